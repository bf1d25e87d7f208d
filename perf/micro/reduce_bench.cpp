// How fast the reduction kernels are, beside the compiler's own loop over the same vectors and
// beside memcpy of one of them, all measured in the same alternating rounds:
//
//   kernel      find_operator's kernel, operand 0 being the target, as the engine calls it
//   loop        operand by operand, `target[i] = target[i] op operand[i]`, with this build's flags
//   memcpy      a copy between two of the vectors
//
// Prints the medians in GB/s, counted as bytes read and written: k + 1 vectors for k operands, 2
// for memcpy. Loops over more than two operands move more than what is counted, which is the point
// of a kernel for k.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <hwy/targets.h>

#include "perf/micro/bench_options.hpp"
#include "ucg_coll/engine/operators.hpp"

namespace {

using namespace ucg::engine;

constexpr std::size_t kBytesMax = 4 << 20;
constexpr std::size_t kOperandsMax = 8;

using Clock = std::chrono::steady_clock;

struct Case {
    const char* name;
    OperatorKind op;
    ElementType type;
    CombineFn loop;
};

template <typename T, typename Apply>
void loop(void*, const std::byte* const* operands, std::size_t operand_count, std::byte* target,
          std::size_t bytes) {
    T* const out = reinterpret_cast<T*>(target);
    for (std::size_t k = 1; k < operand_count; ++k) {
        const T* const right = reinterpret_cast<const T*>(operands[k]);
        for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
            out[i] = Apply::apply(out[i], right[i]);
        }
    }
}

struct Sum {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a + b);
    }
};
struct Prod {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a * b);
    }
};
struct Max {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? b : a;
    }
};
struct Land {
    template <typename T>
    static T apply(T a, T b) {
        return a && b;
    }
};
struct Band {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a & b);
    }
};

// Unsigned types represent the signed ones where the kernel is the same.
constexpr std::array kCases = {
    Case{"sum double", OperatorKind::sum, ElementType::float64, loop<double, Sum>},
    Case{"sum float", OperatorKind::sum, ElementType::float32, loop<float, Sum>},
    Case{"sum uint8", OperatorKind::sum, ElementType::uint8, loop<std::uint8_t, Sum>},
    Case{"sum uint32", OperatorKind::sum, ElementType::uint32, loop<std::uint32_t, Sum>},
    Case{"sum uint64", OperatorKind::sum, ElementType::uint64, loop<std::uint64_t, Sum>},
    Case{"prod double", OperatorKind::prod, ElementType::float64, loop<double, Prod>},
    Case{"prod uint8", OperatorKind::prod, ElementType::uint8, loop<std::uint8_t, Prod>},
    Case{"prod uint32", OperatorKind::prod, ElementType::uint32, loop<std::uint32_t, Prod>},
    Case{"prod uint64", OperatorKind::prod, ElementType::uint64, loop<std::uint64_t, Prod>},
    Case{"max double", OperatorKind::max, ElementType::float64, loop<double, Max>},
    Case{"max float", OperatorKind::max, ElementType::float32, loop<float, Max>},
    Case{"max int8", OperatorKind::max, ElementType::int8, loop<std::int8_t, Max>},
    Case{"max int32", OperatorKind::max, ElementType::int32, loop<std::int32_t, Max>},
    Case{"max int64", OperatorKind::max, ElementType::int64, loop<std::int64_t, Max>},
    Case{"max uint64", OperatorKind::max, ElementType::uint64, loop<std::uint64_t, Max>},
    Case{"land uint8", OperatorKind::land, ElementType::uint8, loop<std::uint8_t, Land>},
    Case{"land uint32", OperatorKind::land, ElementType::uint32, loop<std::uint32_t, Land>},
    Case{"land uint64", OperatorKind::land, ElementType::uint64, loop<std::uint64_t, Land>},
    Case{"band uint32", OperatorKind::band, ElementType::uint32, loop<std::uint32_t, Band>},
};

struct Settings {
    unsigned rounds = 0;              ///< 0: the option was not given.
    std::size_t work_bytes = 8 << 20; ///< About as much for each kind in each round.
};

/// The operands, of which the first is the target. They are filled with ones, so that products do
/// not change.
class Vectors {
  public:
    Vectors() {
        for (std::size_t k = 0; k < kOperandsMax; ++k) {
            memory_[k].assign(kBytesMax, std::byte{0});
            operands_[k] = memory_[k].data();
        }
    }

    template <typename T>
    void fill_ones() {
        for (auto& memory : memory_) {
            T* const values = reinterpret_cast<T*>(memory.data());
            std::fill(values, values + kBytesMax / sizeof(T), T(1));
        }
    }

    void fill_ones(ElementType type) {
        switch (type) {
        case ElementType::float32: return fill_ones<float>();
        case ElementType::float64: return fill_ones<double>();
        default: return fill_ones<std::uint8_t>();
        }
    }

    void combine(CombineFn function, std::size_t operand_count, std::size_t bytes) {
        function(nullptr, operands_.data(), operand_count, memory_[0].data(), bytes);
    }

    void copy(std::size_t bytes) {
        std::memcpy(memory_[0].data(), memory_[1].data(), bytes);
        asm volatile("" ::: "memory"); // The copies must not be merged.
    }

  private:
    std::array<std::vector<std::byte>, kOperandsMax> memory_;
    std::array<const std::byte*, kOperandsMax> operands_{};
};

/// Returns the GB/s of `action`, which moves `moved` bytes.
template <typename Action>
double rate(std::size_t moved, std::size_t repetitions, Action action) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < repetitions; ++i) {
        action();
    }
    const std::chrono::duration<double, std::nano> time = Clock::now() - start;
    return static_cast<double>(moved * repetitions) / time.count();
}

double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void measure(Vectors& vectors, const Case& one, std::size_t operand_count, std::size_t bytes,
             const Settings& settings) {
    const CombineFn kernel = find_operator(one.op, one.type);
    const std::size_t moved = (operand_count + 1) * bytes;
    const std::size_t repetitions = std::max<std::size_t>(settings.work_bytes / moved, 1);
    std::array<std::vector<double>, 3> rates;
    vectors.fill_ones(one.type);
    for (unsigned round = 0; round < settings.rounds; ++round) {
        rates[0].push_back(
            rate(moved, repetitions, [&] { vectors.combine(kernel, operand_count, bytes); }));
        rates[1].push_back(
            rate(moved, repetitions, [&] { vectors.combine(one.loop, operand_count, bytes); }));
        rates[2].push_back(rate(2 * bytes, repetitions, [&] { vectors.copy(bytes); }));
    }
    std::printf("%-12s %8zu %3zu %10.1f %10.1f %10.1f\n", one.name, bytes, operand_count,
                median(rates[0]), median(rates[1]), median(rates[2]));
}

constexpr std::string_view kUsage =
    "usage: reduce_bench [--smoke] [--rounds N]\n"
    "Reduction kernels beside the compiler's own loop and memcpy.\n"
    "  --smoke      a call of each in a round, to see that it runs\n"
    "  --rounds N   rounds of which the median is taken (30; with --smoke 1)\n";

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    bool smoke = false;
    if (const auto status = ucg::perf::read_options(argc, argv, kUsage, {{"--smoke", smoke}},
                                                    {{"--rounds", settings.rounds, 1 << 20}})) {
        return *status;
    }
    settings.rounds = settings.rounds != 0 ? settings.rounds : smoke ? 1 : 30;
    settings.work_bytes = smoke ? 1 : settings.work_bytes;
    std::printf("instruction set %s\n",
                hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()));
    std::printf("%-12s %8s %3s %10s %10s %10s\n", "operator", "bytes", "k", "kernel", "loop",
                "memcpy");
    Vectors vectors;
    for (const Case& one : kCases) {
        const bool first = &one == &kCases.front();
        for (const std::size_t bytes : {16 << 10, 64 << 10, 1 << 20, 4 << 20}) {
            for (const std::size_t operand_count : {2, 4, 8}) {
                if (first || operand_count == 2) {
                    measure(vectors, one, operand_count, bytes, settings);
                }
            }
        }
    }
    return 0;
}
