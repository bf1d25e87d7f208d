// Work that callbacks leave to be done later: its order, work that is added meanwhile, and memory
// that is kept.
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/due.hpp"

using ucg::transport::ucx::Due;

namespace {

/// Adds these items, takes them all, and returns the addresses at which they were seen.
std::vector<const int*> places(Due<int>& due, int count) {
    for (int i = 0; i < count; ++i) {
        due.add(i);
    }
    std::vector<const int*> seen;
    due.take_all([&seen](const int& item) { seen.push_back(&item); });
    return seen;
}

} // namespace

TEST_CASE("ucx: what is due is taken in order, and what is found meanwhile the next time",
          "[ucx][due]") {
    Due<int> due;
    CHECK(due.empty());
    due.add(1);
    due.add(2);
    std::vector<int> seen;
    const auto take = [&](int item) {
        seen.push_back(item);
        if (item < 3) {
            due.add(item + 2);
        }
    };
    due.take_all(take);
    CHECK(seen == std::vector{1, 2});
    CHECK_FALSE(due.empty());
    due.take_all(take);
    CHECK(seen == std::vector{1, 2, 3, 4});
    CHECK(due.empty());
}

TEST_CASE("ucx: what is due while it is being taken is not lost", "[ucx][due]") {
    Due<int> due;
    std::vector<int> seen;
    due.add(1);
    due.take_all([&](int item) {
        seen.push_back(item);
        due.add(2);
        due.take_all([&](int inner) { seen.push_back(inner); });
    });
    CHECK(seen == std::vector{1, 2});
    CHECK(due.empty());
}

TEST_CASE("ucx: what is due for somebody who has gone is dropped", "[ucx][due]") {
    Due<int> due;
    for (const int item : {1, 2, 3, 2}) {
        due.add(item);
    }
    due.drop_if([](int item) { return item == 2; });
    std::vector<int> seen;
    due.take_all([&](int item) { seen.push_back(item); });
    CHECK(seen == std::vector{1, 3});
}

TEST_CASE("ucx: what is due has two places, in turn", "[ucx][due]") {
    Due<int> due;
    const std::vector<const int*> first = places(due, 20);
    const std::vector<const int*> second = places(due, 20);
    CHECK(places(due, 20) == first);
    CHECK(places(due, 7) == std::vector(second.begin(), second.begin() + 7));
    CHECK(places(due, 20) == first);
}
