#include "test/support/catch.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan {
namespace {

using graph::Collective;

AlgorithmsBySize read(std::string_view text, Collective collective = Collective::allreduce) {
    const Result<AlgorithmsBySize> result = parse_algorithms_by_size(collective, text);
    INFO(text << ": " << result.status().message());
    REQUIRE(result.ok());
    return *result;
}

std::string refusal(std::string_view text, Collective collective = Collective::allreduce) {
    const Result<AlgorithmsBySize> result = parse_algorithms_by_size(collective, text);
    REQUIRE(result.status().code() == Code::invalid_argument);
    return std::string(result.status().message());
}

TEST_CASE("algorithms by size: one for every size", "[plan]") {
    CHECK(read("").algorithm(0).empty());
    CHECK(read("ring").algorithm(0) == "ring");
    CHECK(read("recursive_multiplying:m1g2a3,n1g3a2").algorithm(1ULL << 60) ==
          "recursive_multiplying:m1g2a3,n1g3a2");
    CHECK(read("ring", Collective::alltoallv).algorithm(0) == "ring");
}

TEST_CASE("algorithms by size: ranges have their first size and not their end", "[plan]") {
    const AlgorithmsBySize list = read("4k-1M:ring;0-4K:recursive_multiplying:a8,a4;2M-inf:x");
    CHECK(list.algorithm(0) == "recursive_multiplying:a8,a4");
    CHECK(list.algorithm(4095) == "recursive_multiplying:a8,a4");
    CHECK(list.algorithm(4096) == "ring");
    CHECK(list.algorithm((1U << 20) - 1) == "ring");
    CHECK(list.algorithm(1U << 20).empty());
    CHECK(list.algorithm(2U << 20) == "x");
    CHECK(list.algorithm(AlgorithmsBySize::kNoEnd - 1) == "x");
    CHECK(to_text(list) == "0-4k:recursive_multiplying:a8,a4;4k-1M:ring;2M-inf:x");
    CHECK(read(to_text(list)) == list);
}

TEST_CASE("algorithms by size: one item may have no range", "[plan]") {
    const AlgorithmsBySize list = read("ring;0-8:recursive_doubling");
    CHECK(list.algorithm(7) == "recursive_doubling");
    CHECK(list.algorithm(8) == "ring");
    CHECK(to_text(list) == "0-8:recursive_doubling;ring");
    CHECK(read(to_text(list)) == list);
}

TEST_CASE("algorithms by size: all sizes have one range each", "[plan]") {
    using Ranges = std::vector<AlgorithmsBySize::Range>;
    constexpr std::uint64_t kNoEnd = AlgorithmsBySize::kNoEnd;
    CHECK(read("").all_sizes() == Ranges{{0, kNoEnd, ""}});
    CHECK(read("ring").all_sizes() == Ranges{{0, kNoEnd, "ring"}});
    CHECK(read("0-inf:ring").all_sizes() == Ranges{{0, kNoEnd, "ring"}});
    CHECK(read("8-16:ring").all_sizes() == Ranges{{0, 8, ""}, {8, 16, "ring"}, {16, kNoEnd, ""}});
    CHECK(read("4-8:ring;8-16:ring;x").all_sizes() ==
          Ranges{{0, 4, "x"}, {4, 16, "ring"}, {16, kNoEnd, "x"}});
    CHECK(read("4-8:x;x").all_sizes() == Ranges{{0, kNoEnd, "x"}});
}

TEST_CASE("algorithms by size: what is wrong is said with its position", "[plan]") {
    CHECK(refusal("0-4k") == "'0-4k', position 4: expected ':' and an algorithm, found the end");
    CHECK(refusal("0-4k:") ==
          "'0-4k:', position 5: expected the name of an algorithm, found the end");
    CHECK(refusal("0:ring") ==
          "'0:ring', position 1: expected '-' and the end of a range of sizes, found ':'");
    CHECK(refusal("0-4q:ring") == "'0-4q:ring', position 2: expected a size such as 65536, 64k, "
                                  "16M or 1G, found '4q' (or inf)");
    CHECK(refusal("8-8:ring") ==
          "'8-8:ring', position 0: the range is empty: its end does not belong to it");
    CHECK(refusal("ring;") == "'ring;', position 5: expected the name of an algorithm or a range "
                              "of sizes such as 0-4k, found the end");
    CHECK(refusal("ring,ring") ==
          "'ring,ring', position 4: expected ':' and an argument, ';' or the end, found ','");
    CHECK(refusal("0-8:ring;4-inf:ring") ==
          "'0-8:ring;4-inf:ring', position 9: the range overlaps another");
    CHECK(refusal("ring;bruck") ==
          "'ring;bruck', position 5: a second algorithm without a range of sizes");
    CHECK(refusal("0-8:pairwise", Collective::alltoallv) ==
          "'0-8:pairwise', position 0: alltoallv has no ranges of sizes: not all ranks know its "
          "lengths");
}

} // namespace
} // namespace ucg::plan
