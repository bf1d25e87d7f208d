#include <deque>
#include <random>
#include <vector>

#include "test/support/catch.hpp"
#include "tools/vcluster_links/delay_line.hpp"

using namespace ucg::tools;

namespace {

struct Sent {
    std::uint64_t due_ns;
    std::vector<std::byte> bytes;
};

bool send(DelayLine& line, std::deque<Sent>& model, std::uint64_t due_ns, std::size_t bytes) {
    const std::span<std::byte> room = line.room();
    if (room.empty()) {
        return false;
    }
    REQUIRE(room.size() == DelayLine::kFrameMax);
    Sent sent{due_ns, std::vector<std::byte>(bytes)};
    for (std::size_t i = 0; i < bytes; ++i) {
        sent.bytes[i] = static_cast<std::byte>(due_ns * 31 + i);
    }
    std::copy(sent.bytes.begin(), sent.bytes.end(), room.begin());
    line.push(bytes, due_ns);
    model.push_back(std::move(sent));
    return true;
}

void receive(DelayLine& line, std::deque<Sent>& model) {
    const DelayLine::Frame frame = line.front();
    REQUIRE(frame.due_ns == model.front().due_ns);
    REQUIRE(std::equal(frame.bytes.begin(), frame.bytes.end(), model.front().bytes.begin(),
                       model.front().bytes.end()));
    line.pop();
    model.pop_front();
    REQUIRE(line.empty() == model.empty());
}

} // namespace

TEST_CASE("a delay line gives frames back whole and in order, however often it wraps") {
    DelayLine line(3 * DelayLine::bytes_for(DelayLine::kFrameMax) + 40);
    std::deque<Sent> model;
    std::mt19937_64 random(7);
    std::uint64_t refused = 0;
    for (std::uint64_t i = 0; i < 20000; ++i) {
        // In some phases more comes in than goes out, in others less.
        const bool filling = i / 500 % 2 == 0;
        if (random() % 8 < (filling ? 6u : 2u)) {
            const std::size_t bytes = random() % 50 == 0 ? DelayLine::kFrameMax : random() % 2000;
            refused += send(line, model, i, bytes) ? 0 : 1;
        } else if (!model.empty()) {
            receive(line, model);
        }
    }
    CHECK(refused > 0);
    while (!model.empty()) {
        receive(line, model);
    }
}

TEST_CASE("a full delay line takes a frame again once one has left") {
    DelayLine line(2 * DelayLine::bytes_for(DelayLine::kFrameMax));
    std::deque<Sent> model;
    REQUIRE(send(line, model, 1, DelayLine::kFrameMax));
    REQUIRE(send(line, model, 2, DelayLine::kFrameMax));
    CHECK_FALSE(send(line, model, 3, 0));
    receive(line, model);
    REQUIRE(send(line, model, 3, DelayLine::kFrameMax));
    CHECK_FALSE(send(line, model, 4, 0));
    receive(line, model);
    receive(line, model);
    CHECK(line.empty());
}

TEST_CASE("a delay line of the smallest size holds one frame") {
    DelayLine line(DelayLine::bytes_for(DelayLine::kFrameMax));
    std::deque<Sent> model;
    for (std::uint64_t i = 0; i < 3; ++i) {
        REQUIRE(send(line, model, i, DelayLine::kFrameMax));
        CHECK(line.room().empty());
        receive(line, model);
    }
}
