#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/base/similar.hpp"

namespace ucg {
namespace {

const std::vector<std::string_view> kNames = {"ranks", "root", "bytes", "blocks", "bytes"};

TEST_CASE("the name with the fewest changed letters was meant") {
    CHECK(most_similar("rnks", kNames) == "ranks");
    CHECK(most_similar("rankss", kNames) == "ranks");
    CHECK(most_similar("block", kNames) == "blocks");
    CHECK(most_similar("bytse", kNames) == "bytes");
}

TEST_CASE("an abbreviation stands for the first name that begins so") {
    const std::vector<std::string_view> names = {"bytes", "placement-file", "placement-text"};
    CHECK(most_similar("placement", names) == "placement-file");
    CHECK(most_similar("pl", names) == "placement-file");
}

TEST_CASE("what is like none of the names has no proposal") {
    CHECK(most_similar("placement", kNames).empty());
    CHECK(most_similar("x", kNames).empty());
    CHECK(most_similar("", kNames).empty());
    CHECK(most_similar("rnks", {}).empty());
    CHECK(most_similar(std::string(1000, 'r'), kNames).empty());
}

} // namespace
} // namespace ucg
