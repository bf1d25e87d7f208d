// Every kernel, on every instruction set of this machine, against the definition in plain C++.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <hwy/targets.h>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/kernels.hpp"

namespace ucg::engine {
namespace {

template <typename T>
T reference(OperatorKind op, T a, T b) {
    using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
    switch (op) {
    case OperatorKind::sum: return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case OperatorKind::prod: return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case OperatorKind::min: return b < a ? b : a;
    case OperatorKind::max: return a < b ? b : a;
    default: break;
    }
    if constexpr (std::is_integral_v<T>) {
        switch (op) {
        case OperatorKind::land: return a != 0 && b != 0;
        case OperatorKind::lor: return a != 0 || b != 0;
        case OperatorKind::lxor: return (a != 0) != (b != 0);
        case OperatorKind::band: return static_cast<T>(a & b);
        case OperatorKind::bor: return static_cast<T>(a | b);
        case OperatorKind::bxor: return static_cast<T>(a ^ b);
        default: break;
        }
    }
    return T();
}

/// Ordinary values, and as many values at which implementations differ.
template <typename T>
T random_value(std::mt19937_64& random) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
        constexpr std::array<T, 5> kSpecial = {0, 1, Limits::max(), Limits::min(),
                                               static_cast<T>(-1)};
        return static_cast<T>(random() % 2 == 0 ? kSpecial[random() % kSpecial.size()] : random());
    } else {
        const std::array<T, 10> special = {T(0),
                                           T(-0.0),
                                           T(1),
                                           Limits::quiet_NaN(),
                                           std::copysign(Limits::quiet_NaN(), T(-1)),
                                           Limits::infinity(),
                                           -Limits::infinity(),
                                           Limits::denorm_min(),
                                           Limits::max(),
                                           Limits::lowest()};
        return random() % 2 == 0 ? special[random() % special.size()]
                                 : static_cast<T>(static_cast<double>(random() % 2000) / 7 - 100);
    }
}

/// Do both have the same bits? Which NaN a sum or product of several NaN yields is not defined.
template <typename T>
bool agrees(OperatorKind op, T result, T expected) {
    if constexpr (std::is_floating_point_v<T>) {
        if (op <= OperatorKind::prod && std::isnan(expected)) {
            return std::isnan(result);
        }
    }
    return std::memcmp(&result, &expected, sizeof(T)) == 0;
}

struct Shape {
    std::size_t count;
    std::size_t operand_count;
    std::size_t misalignment; ///< The target's, in bytes; operand k lies k bytes further on.
    bool in_place;
};

/// A range of elements at a chosen misalignment, between bytes that must not change.
class Range {
  public:
    Range(std::size_t bytes, std::size_t misalignment)
        : memory_(bytes + 3 * kMargin, std::byte{0x5A}), bytes_(bytes),
          offset_(kMargin + misalignment) {
        // The misalignment is relative to a SIMD vector's boundary, wherever the memory lies.
        offset_ += (kMargin - reinterpret_cast<std::uintptr_t>(memory_.data()) % kMargin) % kMargin;
    }

    std::byte* data() { return memory_.data() + offset_; }

    template <typename T>
    T get(std::size_t index) {
        T value;
        std::memcpy(&value, data() + index * sizeof(T), sizeof(T));
        return value;
    }

    bool margins_intact() const {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            const bool outside = i < offset_ || i >= offset_ + bytes_;
            if (outside && memory_[i] != std::byte{0x5A}) {
                return false;
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t kMargin = 64;
    std::vector<std::byte> memory_;
    std::size_t bytes_;
    std::size_t offset_;
};

/// Does the kernel compute the right result for this shape?
template <typename T>
bool holds(CombineFn combine, OperatorKind op, const Shape& shape, std::mt19937_64& random) {
    const std::size_t bytes = shape.count * sizeof(T);
    std::vector<Range> operands;
    std::vector<const std::byte*> addresses;
    std::vector<T> expected(shape.count);
    for (std::size_t k = 0; k < shape.operand_count; ++k) {
        Range& range = operands.emplace_back(bytes, (shape.misalignment + k) % 64);
        for (std::size_t i = 0; i < shape.count; ++i) {
            const T value = random_value<T>(random);
            std::memcpy(range.data() + i * sizeof(T), &value, sizeof(T));
            expected[i] = k == 0 ? value : reference(op, expected[i], value);
        }
    }
    for (Range& range : operands) {
        addresses.push_back(range.data());
    }
    Range fresh(bytes, shape.misalignment);
    Range& target = shape.in_place ? operands[0] : fresh;
    combine(nullptr, addresses.data(), shape.operand_count, target.data(), bytes);
    bool good = target.margins_intact();
    for (std::size_t i = 0; i < shape.count; ++i) {
        good = good && agrees(op, target.get<T>(i), expected[i]);
    }
    return good;
}

template <typename T>
void check_type(const KernelTable& table, ElementType type) {
    for (std::size_t row = 0; row < kOperatorCount; ++row) {
        const auto op = static_cast<OperatorKind>(row);
        const CombineFn combine = table[row][static_cast<std::size_t>(type)];
        CAPTURE(row, static_cast<int>(type));
        if (op >= (std::is_floating_point_v<T> ? OperatorKind::land : OperatorKind::minloc)) {
            CHECK(combine == nullptr);
            continue;
        }
        REQUIRE(combine != nullptr);
        std::mt19937_64 random(row);
        std::string failures;
        for (const std::size_t count : {0, 1, 2, 3, 7, 8, 15, 16, 17, 33, 63, 64, 65, 130, 271}) {
            for (std::size_t k = 2; k <= 9; ++k) {
                // The target is shifted by whole elements where k is even, by any number of bytes
                // where k is odd.
                const std::size_t misalignment = k % 2 == 0 ? count % 5 * sizeof(T) : count % 64;
                for (const bool in_place : {false, true}) {
                    if (!holds<T>(combine, op, {count, k, misalignment, in_place}, random)) {
                        failures += fmt::format("{}x{}{} ", count, k, in_place ? " in place" : "");
                    }
                }
            }
        }
        CHECK(failures == "");
    }
}

void check_all(const KernelTable& table) {
    check_type<std::int8_t>(table, ElementType::int8);
    check_type<std::int16_t>(table, ElementType::int16);
    check_type<std::int32_t>(table, ElementType::int32);
    check_type<std::int64_t>(table, ElementType::int64);
    check_type<std::uint8_t>(table, ElementType::uint8);
    check_type<std::uint16_t>(table, ElementType::uint16);
    check_type<std::uint32_t>(table, ElementType::uint32);
    check_type<std::uint64_t>(table, ElementType::uint64);
    check_type<float>(table, ElementType::float32);
    check_type<double>(table, ElementType::float64);
}

/// Makes Highway use one instruction set only, as long as it lives.
class OnlyTarget {
  public:
    explicit OnlyTarget(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
    ~OnlyTarget() { hwy::SetSupportedTargetsForTest(0); }
    OnlyTarget(const OnlyTarget&) = delete;
    OnlyTarget& operator=(const OnlyTarget&) = delete;
};

/// Two pages, the second of which is not accessible.
class LastPage {
  public:
    LastPage() : bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
        void* const memory =
            ::mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        begin_ = static_cast<std::byte*>(memory);
        REQUIRE(::mprotect(begin_ + bytes_, bytes_, PROT_NONE) == 0);
    }
    ~LastPage() { ::munmap(begin_, 2 * bytes_); }
    LastPage(const LastPage&) = delete;
    LastPage& operator=(const LastPage&) = delete;

    std::byte* end() { return begin_ + bytes_; }

  private:
    std::size_t bytes_;
    std::byte* begin_ = nullptr;
};

TEST_CASE("operators: every operator on every type agrees with its definition", "[operators]") {
    const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
    std::set<CombineFn> sums;
    for (const std::int64_t target : targets) {
        CAPTURE(hwy::TargetName(target));
        const OnlyTarget only(target);
        KernelTable best = best_kernels();
        check_all(best);
        sums.insert(
            row_of(best, OperatorKind::sum)[static_cast<std::size_t>(ElementType::float64)]);
    }
    CHECK(sums.size() == targets.size()); // Each target has kernels of its own.
}

#if HWY_ARCH_X86
/// The flags that the system reports for the first processor.
std::set<std::string> processor_flags() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("flags", 0) == 0) {
            std::istringstream words(line.substr(line.find(':') + 1));
            return {std::istream_iterator<std::string>(words), {}};
        }
    }
    return {};
}

TEST_CASE("operators: all instruction sets that the processor has are used", "[operators]") {
    struct Needs {
        std::int64_t target;
        /// The flags that it needs besides those of the rows above.
        std::vector<std::string> flags;
    };
    const std::vector<Needs> rows = {
        {HWY_SSSE3, {"ssse3"}},
        {HWY_SSE4, {"sse4_1", "sse4_2", "pclmulqdq", "aes"}},
        {HWY_AVX2, {"avx", "avx2", "fma", "bmi1", "bmi2"}},
        {HWY_AVX3, {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"}}};
    const std::set<std::string> flags = processor_flags();
    bool there = true;
    for (const Needs& needs : rows) {
        CAPTURE(hwy::TargetName(needs.target));
        there = there && std::all_of(needs.flags.begin(), needs.flags.end(),
                                     [&](const std::string& flag) { return flags.contains(flag); });
        const bool built = (HWY_TARGETS & needs.target) != 0;
        const bool used = (hwy::SupportedTargets() & needs.target) != 0;
        CHECK(used == (there && built));
    }
}
#endif

TEST_CASE("operators: nothing is read behind the operands", "[operators]") {
    std::array<LastPage, 3> pages;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const OnlyTarget only(target);
        const KernelTable table = best_kernels();
        for (std::size_t bytes = 0; bytes <= 600; bytes += 8) {
            std::array<const std::byte*, 3> operands{};
            for (std::size_t k = 0; k < pages.size(); ++k) {
                operands[k] = pages[k].end() - bytes;
            }
            for (std::size_t type = 0; type < kElementTypeCount; ++type) {
                if (const CombineFn sum = table[0][type]; sum != nullptr) {
                    sum(nullptr, operands.data(), operands.size(), pages[0].end() - bytes, bytes);
                }
            }
        }
    }
    CHECK(*(pages[0].end() - 1) == std::byte{0});
}

TEST_CASE("operators: a fold in parts has the bits of the whole", "[operators]") {
    const CombineFn sum = find_operator(OperatorKind::sum, ElementType::float32);
    std::mt19937_64 random(5);
    constexpr std::size_t kCount = 1003;
    std::vector<std::vector<float>> values(6, std::vector<float>(kCount));
    std::vector<const std::byte*> operands;
    for (auto& operand : values) {
        for (float& value : operand) {
            value = static_cast<float>(random()) * 1e-19F;
        }
        operands.push_back(reinterpret_cast<const std::byte*>(operand.data()));
    }
    std::vector<float> whole(kCount);
    std::vector<float> parts(kCount);
    auto* const target = reinterpret_cast<std::byte*>(parts.data());
    sum(nullptr, operands.data(), 6, reinterpret_cast<std::byte*>(whole.data()), kCount * 4);
    sum(nullptr, operands.data(), 3, target, kCount * 4);
    for (const std::size_t k : {3, 4, 5}) {
        const std::array<const std::byte*, 2> pair = {target, operands[k]};
        // The vector is cut at an element where no SIMD vector ends.
        const std::array<const std::byte*, 2> rest = {target + 348, operands[k] + 348};
        sum(nullptr, rest.data(), 2, target + 348, kCount * 4 - 348);
        sum(nullptr, pair.data(), 2, target, 348);
    }
    CHECK(std::memcmp(whole.data(), parts.data(), kCount * 4) == 0);
}

TEST_CASE("operators: eight-bit sums wrap around", "[operators]") {
    std::array<std::int8_t, 64> left{};
    left.fill(100);
    std::array<std::int8_t, 64> target{};
    const std::array<const std::byte*, 2> operands = {
        reinterpret_cast<const std::byte*>(left.data()),
        reinterpret_cast<const std::byte*>(left.data())};
    find_operator(OperatorKind::sum, ElementType::int8)(
        nullptr, operands.data(), 2, reinterpret_cast<std::byte*>(target.data()), target.size());
    for (const std::int8_t value : target) {
        CHECK(value == -56);
    }
}

} // namespace
} // namespace ucg::engine
