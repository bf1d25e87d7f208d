// The command line of the benchmarks here: flags, counts, and --help.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "perf/option_value.h"

namespace ucg::perf {

struct BenchFlag {
    const char* name;
    bool& value;
};

/// An option whose value is a whole number from 1 to `most`.
struct BenchCount {
    const char* name;
    unsigned& value;
    long most;
};

/// Reads the command line. Returns no value if the program is to go on, else its exit status: 0
/// after --help, 2 for an unknown option or a wrong value, which is reported on standard error.
/// `usage` begins with "usage: PROGRAM ".
inline std::optional<int> read_options(int argc, char** argv, std::string_view usage,
                                       std::initializer_list<BenchFlag> flags,
                                       std::initializer_list<BenchCount> counts) {
    const auto is_read = [&](int& at) {
        const std::string_view option = argv[at];
        for (const BenchFlag& flag : flags) {
            if (option == flag.name) {
                flag.value = true;
                return true;
            }
        }
        for (const BenchCount& count : counts) {
            if (option == count.name) {
                const char* text = at + 1 < argc ? argv[++at] : "";
                const long value = option_count(count.name, text, 1, count.most, 1);
                count.value = value < 0 ? 0 : static_cast<unsigned>(value);
                return value >= 0;
            }
        }
        std::fprintf(stderr, "unknown option '%s'; see --help\n", argv[at]);
        return false;
    };
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--help" || option == "-h") {
            std::fwrite(usage.data(), 1, usage.size(), stdout);
            return 0;
        }
        if (!is_read(i)) {
            return 2;
        }
    }
    return std::nullopt;
}

} // namespace ucg::perf
