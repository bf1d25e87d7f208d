// Catch2, version 2 or 3, under the same names.
#pragma once
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx; // Version 2 has it under this name.
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { // Version 3 has it under this name.
    return Catch::Matchers::Contains(text);
}
#endif
