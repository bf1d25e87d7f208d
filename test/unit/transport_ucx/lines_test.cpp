#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/lines.hpp"

using namespace ucg;
using namespace ucg::transport::ucx;

namespace {

using Ring = std::array<RingLine, kLinesPerRing>;

RingLine line_of(std::mt19937& random, std::uint32_t sequence) {
    RingLine line;
    line.bytes = random() % (kLineDataBytes + 1);
    line.taken = random();
    line.envelope.group = 1;
    line.envelope.sequence = sequence;
    for (std::byte& each : line.data) {
        each = static_cast<std::byte>(random());
    }
    return line;
}

RingLine* place_of(Ring& ring, const LineWriter& writer) {
    return &ring[writer.offset() / sizeof(RingLine)];
}

} // namespace

TEST_CASE("ucx lines: they come in order, and none before there is room", "[ucx]") {
    Ring ring{};
    LineWriter writer;
    LineReader reader(ring);
    std::mt19937 random(1);
    std::uint32_t sent = 0;
    std::uint32_t taken = 0;
    while (taken < 1000) {
        if (random() % 2 == 0 && writer.has_room()) {
            RingLine line = line_of(random, sent++);
            writer.seal(line);
            *place_of(ring, writer) = line;
            writer.advance();
        } else if (const std::optional<RingLine> line = reader.take()) {
            CHECK(line->envelope.sequence == taken++);
        } else {
            CHECK(taken == sent);
        }
        CHECK(sent - taken <= kLinesPerRing);
        if (reader.owes()) {
            writer.acknowledge(reader.taken());
            reader.reported(reader.taken());
        }
    }
}

TEST_CASE("ucx lines: a line whose bytes come in any order counts when all are there", "[ucx]") {
    Ring ring{};
    LineWriter writer;
    LineReader reader(ring);
    std::mt19937 random(2);
    for (std::uint32_t i = 0; i < 2000; ++i) {
        RingLine line = line_of(random, i);
        // After as many collectives in a row, all but the sequence is as it was a lap before.
        if (i % 3 == 0) {
            line = RingLine{};
            line.envelope.sequence = i;
        }
        writer.seal(line);
        std::array<std::size_t, sizeof(RingLine)> order{};
        for (std::size_t k = 0; k < order.size(); ++k) {
            order[k] = k;
        }
        std::shuffle(order.begin(), order.end(), random);
        auto* target = reinterpret_cast<std::byte*>(place_of(ring, writer));
        const auto* source = reinterpret_cast<const std::byte*>(&line);
        bool early = false;
        for (const std::size_t k : order) {
            const bool whole = std::memcmp(target, source, sizeof(line)) == 0;
            const std::optional<RingLine> got = whole ? std::nullopt : reader.take();
            early = early || got.has_value();
            target[k] = source[k];
        }
        CHECK_FALSE(early);
        const std::optional<RingLine> got = reader.take();
        REQUIRE(got);
        CHECK(std::memcmp(&*got, &line, sizeof(line)) == 0);
        CHECK_FALSE(reader.take());
        writer.advance();
        writer.acknowledge(reader.taken());
    }
}

TEST_CASE("ucx lines: counts that cannot be change nothing", "[ucx]") {
    LineWriter writer;
    for (std::uint32_t i = 0; i < kLinesPerRing; ++i) {
        CHECK(writer.has_room());
        writer.advance();
    }
    CHECK_FALSE(writer.has_room());
    writer.acknowledge(kLinesPerRing + 1); // These are more than were sent.
    CHECK_FALSE(writer.has_room());
    writer.acknowledge(2);
    writer.acknowledge(1); // This one comes late.
    writer.advance();
    CHECK(writer.has_room());
    writer.advance();
    CHECK_FALSE(writer.has_room());
}
