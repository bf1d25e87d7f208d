#include <clocale>

#include "test/support/catch.hpp"
#include "ucg_coll/base/ascii.hpp"

TEST_CASE("base: upper case of names", "[base]") {
    CHECK(ucg::ascii_upper("") == "");
    CHECK(ucg::ascii_upper("reduce_scatter_block 9[`{@Z") == "REDUCE_SCATTER_BLOCK 9[`{@Z");
    CHECK(ucg::ascii_upper("\xc4\xb1\xff") == "\xc4\xb1\xff");
    // Where a Turkish locale is installed, toupper() leaves the i in "barrier".
    const std::string before = std::setlocale(LC_ALL, nullptr);
    static_cast<void>(std::setlocale(LC_ALL, "tr_TR.UTF-8"));
    CHECK(ucg::ascii_upper("barrier") == "BARRIER");
    std::setlocale(LC_ALL, before.c_str());
}
