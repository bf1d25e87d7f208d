#include "test/support/catch.hpp"
#include "ucg_coll/base/random.hpp"

namespace ucg {

TEST_CASE("random words differ") {
    const Result<std::uint64_t> one = random_word();
    const Result<std::uint64_t> other = random_word();
    REQUIRE(one.ok());
    REQUIRE(other.ok());
    CHECK(*one != *other);
}

} // namespace ucg
