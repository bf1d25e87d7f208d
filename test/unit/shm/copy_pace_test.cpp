#include <cstdint>
#include <vector>

#include "shm/copy_pace.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::shm;
using Way = CopyPace::Way;

struct Rates {
    double ordinary_ns;
    double streaming_ns;
};

struct Counts {
    unsigned ordinary = 0;
    unsigned streaming = 0;
    unsigned timed = 0;
};

/// Makes so many copies, which take the times per byte that `rates` says.
Counts copy(CopyPace& pace, unsigned copies, const Rates& rates) {
    Counts counts;
    for (unsigned i = 0; i < copies; ++i) {
        const bool ordinary = pace.next() == Way::ordinary;
        (ordinary ? counts.ordinary : counts.streaming) += 1;
        if (pace.timed()) {
            ++counts.timed;
            pace.passed(ordinary ? rates.ordinary_ns : rates.streaming_ns);
        } else {
            pace.passed();
        }
    }
    return counts;
}

} // namespace

TEST_CASE("shm/copy_pace: copies go by what is faster for both ends", "[shm]") {
    CopyPace pace;
    CHECK(pace.way() == Way::ordinary);
    // The first buffers: their pages are new, and they lie in the receiver's cache.
    copy(pace, 2000, {0.45, 0.04});
    CHECK(pace.way() == Way::ordinary);
    copy(pace, 1000, {0.02, 0.025});
    CHECK(pace.way() == Way::ordinary);
    // The sender gains, but not enough for the receiver to lose time.
    copy(pace, 5000, {0.06, 0.03});
    CHECK(pace.way() == Way::ordinary);
    copy(pace, 5000, {0.45, 0.04});
    CHECK(pace.way() == Way::streaming);
    copy(pace, 5000, {0.11, 0.04});
    CHECK(pace.way() == Way::streaming);
    // The cores are now close to each other, so the sender alone would gain.
    copy(pace, 5000, {0.03, 0.02});
    CHECK(pace.way() == Way::ordinary);
}

TEST_CASE("shm/copy_pace: one slow copy changes nothing", "[shm]") {
    CopyPace pace;
    copy(pace, 2047, {0.02, 0.03});
    REQUIRE(pace.timed());
    copy(pace, 1, {9, 0.03}); // The process was interrupted in between.
    copy(pace, 1, {0.02, 0.03});
    CHECK(pace.way() == Way::ordinary);
    copy(pace, 10000, {0.02, 0.03});
    CHECK(pace.way() == Way::ordinary);
}

TEST_CASE("shm/copy_pace: the first comparison may come earlier", "[shm]") {
    CopyPace pace(256);
    copy(pace, 255, {0.45, 0.04});
    CHECK(pace.timed());
    copy(pace, 200, {0.45, 0.04});
    CHECK(pace.way() == Way::streaming);
}

TEST_CASE("shm/copy_pace: looking costs little", "[shm]") {
    CopyPace pace;
    copy(pace, 10000, {0.02, 0.03});
    const Counts later = copy(pace, 100000, {0.02, 0.03});
    CHECK(later.streaming < 60);
    CHECK(later.timed < 120);
}

TEST_CASE("shm/copy_pace: the bytes arrive whichever way", "[shm]") {
    CopyPace pace;
    std::vector<std::byte> source(5000);
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<std::byte>(i * 7);
    }
    unsigned timed = 0;
    for (unsigned i = 0; i < 4200; ++i) { // The pace times one or two rounds of these copies.
        timed += pace.timed() ? 1 : 0;
        std::vector<std::byte> target(source.size() + 1);
        copy_at_pace(pace, target.data(), source.data(), source.size());
        CHECK(target.back() == std::byte{0});
        target.pop_back();
        CHECK(target == source);
    }
    CHECK(timed >= 2);
    CHECK(timed < 80); // At most two of 64 are timed, once the ring has gone around.
}
