#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace {

using namespace ucg;
using transport::Delivery;
using transport::FlagSlots;
using transport::FlagSlotSequence;
using transport::LoopbackFabric;

constexpr Rank kRanks = 3;
constexpr std::uint64_t kDepth = 8;

FlagSlotSequence sequence(std::uint64_t number) {
    return {number, static_cast<std::uint32_t>(number + 3), 1};
}

FlagSlots& flag_slot(LoopbackFabric& fabric, Rank rank) {
    return *fabric.transport(rank).flag_slots();
}

std::vector<std::byte> data_of(std::uint64_t number, Rank rank) {
    return std::vector<std::byte>(number % 3 * 1000,
                                  static_cast<std::byte>(number * 5 + static_cast<unsigned>(rank)));
}

/// How many looks it takes to see a share; only chance bounds their number.
unsigned looks_until_seen(LoopbackFabric& fabric, Rank reader, std::uint64_t number, Rank owner) {
    unsigned looks = 1;
    while (flag_slot(fabric, reader).shared(sequence(number), owner, 0) == nullptr &&
           looks < 1000) {
        ++looks;
    }
    return looks;
}

} // namespace

TEST_CASE("transport/loopback: every reader sees what each rank shares, and keeps seeing it",
          "[loopback][flag_slots]") {
    const auto delivery = GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    LoopbackFabric fabric(kRanks, delivery, GENERATE(1U, 2U, 3U));
    unsigned late = 0;
    for (std::uint64_t number = 0; number < 20; ++number) {
        for (Rank owner = 0; owner < kRanks; ++owner) {
            const auto data = data_of(number, owner);
            CHECK(flag_slot(fabric, (owner + 1) % kRanks).shared(sequence(number), owner, 0) ==
                  nullptr);
            REQUIRE(flag_slot(fabric, owner).share(sequence(number), data.data(), data.size()));
            for (const Rank reader : {(owner + 1) % kRanks, (owner + 2) % kRanks}) {
                const unsigned looks = looks_until_seen(fabric, reader, number, owner);
                REQUIRE(looks < 1000);
                late += looks > 1 ? 1 : 0;
                const std::byte* seen =
                    flag_slot(fabric, reader).shared(sequence(number), owner, 0);
                REQUIRE(seen != nullptr);
                CHECK(std::vector<std::byte>(seen, seen + data.size()) == data);
            }
        }
        for (Rank rank = 0; rank < kRanks; ++rank) {
            flag_slot(fabric, rank).finish(number + 1);
        }
    }
    CHECK((late > 0) == (delivery != Delivery::immediate));
}

TEST_CASE("transport/loopback: a flag slot has room again when the last peer is done",
          "[loopback][flag_slots]") {
    LoopbackFabric fabric(kRanks, Delivery::immediate, 1, kDepth);
    FlagSlots& own = flag_slot(fabric, 1);
    for (std::uint64_t number = 0; number < kDepth; ++number) {
        CHECK(own.share(sequence(number), nullptr, 0));
    }
    CHECK_FALSE(own.share(sequence(kDepth), nullptr, 0));
    flag_slot(fabric, 0).finish(2);
    CHECK_FALSE(own.share(sequence(kDepth), nullptr, 0));
    CHECK(flag_slot(fabric, 2).shared(sequence(0), 1, 0) != nullptr);
    flag_slot(fabric, 2).finish(1);
    CHECK(own.share(sequence(kDepth), nullptr, 0));
    CHECK_FALSE(own.share(sequence(kDepth + 1), nullptr, 0));
    CHECK_FALSE(own.broken());
}
