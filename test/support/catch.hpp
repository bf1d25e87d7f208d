// Catch2, version 2 or 3, under one name.
#pragma once
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx; // As version 2 has it.
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { // As version 3 has it.
    return Catch::Matchers::Contains(text);
}
#endif
