#include <random>

#include "test/support/catch.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg {
namespace {

TEST_CASE("printable: plain text stays as it is", "[printable]") {
    CHECK(printable("") == "");
    CHECK(printable("ring, 8 bytes\n\t{}~") == "ring, 8 bytes\n\t{}~");
    CHECK(printable("Knoten \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80") ==
          "Knoten \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80");
}

TEST_CASE("printable: what commands a terminal is written out", "[printable]") {
    CHECK(printable("a\x1b[2Jb") == "a\\u001b[2Jb");
    CHECK(printable("\x1b]0;title\x07") == "\\u001b]0;title\\u0007");
    CHECK(printable("back\bspace\r\x7f") == "back\\u0008space\\u000d\\u007f");
    CHECK(printable(std::string_view("nul\0", 4)) == "nul\\u0000");
    // The same commands in one character: CSI and OSC of C1, in UTF-8 and as a single byte.
    CHECK(printable("\xc2\x9b"
                    "2J") == "\\u009b2J");
    CHECK(printable("\x9b"
                    "2J") == "\\u009b2J");
}

TEST_CASE("printable: what is not UTF-8 is written out", "[printable]") {
    CHECK(printable("\xff") == "\\u00ff");
    CHECK(printable("\xc3") == "\\u00c3");            // The sequence is cut short.
    CHECK(printable("\xc0\x9b") == "\\u00c0\\u009b"); // The sequence is longer than it needs to be.
    CHECK(printable("\xed\xa0\x80") == "\\u00ed\\u00a0\\u0080");
    CHECK(printable("\xf4\x90\x80\x80") == "\\u00f4\\u0090\\u0080\\u0080");
}

TEST_CASE("printable: line breaks are kept or written out", "[printable]") {
    CHECK(printable("one\ntwo") == "one\ntwo");
    CHECK(printable("one\ntwo", LineBreaks::escape) == "one\\u000atwo");
    CHECK(printable("one\x1b\ntwo") == "one\\u001b\ntwo");
}

TEST_CASE("printable: of any bytes nothing is left that a terminal obeys", "[printable]") {
    std::mt19937 random(20261122);
    std::uniform_int_distribution<int> byte(0, 255);
    std::uniform_int_distribution<std::size_t> length(0, 40);
    for (int round = 0; round < 20'000; ++round) {
        std::string text(length(random), ' ');
        for (char& letter : text) {
            letter = static_cast<char>(byte(random));
        }
        const std::string shown = printable(text, LineBreaks::escape);
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const auto letter = static_cast<unsigned char>(shown[i]);
            REQUIRE(((letter >= 0x20 && letter != 0x7f) || letter == '\t'));
            if (letter == 0xc2) { // The C1 controls are C2 80 to C2 9F.
                REQUIRE(i + 1 < shown.size());
                REQUIRE(static_cast<unsigned char>(shown[i + 1]) >= 0xa0);
            }
        }
        REQUIRE(printable(shown, LineBreaks::escape) == shown); // So all of it is UTF-8.
    }
}

} // namespace
} // namespace ucg
