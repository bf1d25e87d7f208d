// Kernels for 16-bit floats, complex numbers and pairs, on every instruction set of this machine,
// against definitions that share no code with them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <hwy/targets.h>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/kernels.hpp"

namespace ucg::engine {
namespace {

/// Makes Highway use one instruction set only, as long as it lives.
class OnlyTarget {
  public:
    explicit OnlyTarget(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
    ~OnlyTarget() { hwy::SetSupportedTargetsForTest(0); }
    OnlyTarget(const OnlyTarget&) = delete;
    OnlyTarget& operator=(const OnlyTarget&) = delete;
};

template <typename T>
struct Definition {
    OperatorKind op;
    ElementType type;
    std::function<T(T, T)> step;
    std::function<bool(T, T)> agrees; ///< Do the kernel's result and the expected one agree?
};

/// Does the kernel agree with the definition on random values that `next` draws? The lengths
/// include those that end in the middle of a SIMD vector.
template <typename T, typename Next>
bool holds(const Definition<T>& definition, Next&& next) {
    const KernelTable table = best_kernels();
    const CombineFn combine =
        table[static_cast<std::size_t>(definition.op)][static_cast<std::size_t>(definition.type)];
    bool good = combine != nullptr;
    for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 8U, 9U, 15U, 16U, 33U, 64U, 131U, 1000U}) {
        for (std::size_t operand_count = 2; good && operand_count <= 5; ++operand_count) {
            std::vector<std::vector<T>> values(operand_count, std::vector<T>(count));
            std::vector<const std::byte*> operands;
            for (std::vector<T>& operand : values) {
                std::generate(operand.begin(), operand.end(), next);
                operands.push_back(reinterpret_cast<const std::byte*>(operand.data()));
            }
            std::vector<T> expected = values[0];
            for (std::size_t k = 1; k < operand_count; ++k) {
                std::transform(expected.begin(), expected.end(), values[k].begin(),
                               expected.begin(), definition.step);
            }
            std::vector<T> fresh(count);
            std::vector<T>& target = operand_count % 2 == 0 ? fresh : values[0];
            combine(nullptr, operands.data(), operand_count,
                    reinterpret_cast<std::byte*>(target.data()), count * sizeof(T));
            good = std::equal(target.begin(), target.end(), expected.begin(), definition.agrees);
        }
    }
    return good;
}

template <typename T, typename Next>
void check_on_every_target(const Definition<T>& definition, Next&& next) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const OnlyTarget only(target);
        CAPTURE(hwy::TargetName(target), static_cast<int>(definition.op),
                static_cast<int>(definition.type));
        CHECK(holds(definition, next));
    }
}

// ---- 16-bit floats: a table of the values of all bit patterns

class Format {
  public:
    Format(unsigned exponent_bits, unsigned fraction_bits) {
        const int bias = (1 << (exponent_bits - 1)) - 1;
        const unsigned infinity = ((1U << exponent_bits) - 1) << fraction_bits;
        for (unsigned bits = 0; bits < infinity; ++bits) {
            const int exponent = static_cast<int>(bits >> fraction_bits);
            const unsigned fraction = bits & ((1U << fraction_bits) - 1);
            const unsigned leading = exponent > 0 ? 1U << fraction_bits : 0;
            finite_.push_back(
                std::ldexp(static_cast<double>(fraction | leading),
                           std::max(exponent, 1) - bias - static_cast<int>(fraction_bits)));
        }
        // The value that the next number would have, if there were one.
        beyond_ = 2 * finite_.back() - finite_[finite_.size() - 2];
    }

    double value(std::uint16_t bits) const {
        const unsigned magnitude = bits & 0x7FFFU;
        double value = std::numeric_limits<double>::quiet_NaN();
        if (magnitude < finite_.size()) {
            value = finite_[magnitude];
        } else if (magnitude == finite_.size()) {
            value = std::numeric_limits<double>::infinity();
        }
        return (bits & 0x8000U) != 0 ? -value : value;
    }

    /// The nearest 16-bit number; of two equally near ones the even one. Values more than half a
    /// step beyond the largest number become infinity.
    std::uint16_t round(double value) const {
        const unsigned sign = std::signbit(value) ? 0x8000U : 0;
        const double magnitude = std::fabs(value);
        if (std::isnan(value)) {
            return static_cast<std::uint16_t>(finite_.size() + 1);
        }
        const auto above = static_cast<unsigned>(
            std::lower_bound(finite_.begin(), finite_.end(), magnitude) - finite_.begin());
        unsigned nearest = above;
        if (above > 0) {
            const double upper = above < finite_.size() ? finite_[above] : beyond_;
            const double down = magnitude - finite_[above - 1];
            const double up = upper - magnitude;
            const bool lower = down < up || (down == up && (above - 1) % 2 == 0);
            nearest = lower ? above - 1 : above;
        }
        return static_cast<std::uint16_t>(sign | nearest);
    }

    bool is_nan(std::uint16_t bits) const { return (bits & 0x7FFFU) > finite_.size(); }

  private:
    std::vector<double> finite_;
    double beyond_ = 0;
};

void check_format(const Format& format, ElementType type) {
    std::mt19937_64 random(3);
    const auto any_bits = [&] { return static_cast<std::uint16_t>(random()); };
    // The values are of nearly equal size, so that sums round.
    const auto near = [&] {
        return static_cast<std::uint16_t>((random() & 0x83FFU) + (random() % 2 == 0 ? 0x3C00 : 0));
    };
    const auto agrees = [&](std::uint16_t result, std::uint16_t expected) {
        return format.is_nan(expected) ? format.is_nan(result) : result == expected;
    };
    const auto step = [&](auto operation) {
        return [&format, operation](std::uint16_t left, std::uint16_t right) {
            return operation(left, right, static_cast<float>(format.value(left)),
                             static_cast<float>(format.value(right)));
        };
    };
    const std::vector<Definition<std::uint16_t>> definitions = {
        {OperatorKind::sum, type,
         step([&](auto, auto, float a, float b) { return format.round(a + b); }), agrees},
        {OperatorKind::prod, type,
         step([&](auto, auto, float a, float b) { return format.round(a * b); }), agrees},
        {OperatorKind::min, type,
         step([](auto left, auto right, float a, float b) { return b < a ? right : left; }),
         agrees},
        {OperatorKind::max, type,
         step([](auto left, auto right, float a, float b) { return a < b ? right : left; }),
         agrees},
    };
    for (const Definition<std::uint16_t>& definition : definitions) {
        check_on_every_target(definition, any_bits);
        check_on_every_target(definition, near);
    }
}

// ---- pairs

template <typename Value, typename Index>
void check_pairs(ElementType type) {
    struct Pair {
        Value value;
        Index index;
    };
    std::mt19937_64 random(4);
    const auto next = [&] {
        Pair pair;
        std::memset(static_cast<void*>(&pair), 0, sizeof(pair));
        pair.value = static_cast<Value>(static_cast<int>(random() % 5) - 2);
        pair.index = static_cast<Index>(random() % 9);
        return pair;
    };
    const auto agrees = [](const Pair& result, const Pair& expected) {
        return result.value == expected.value && result.index == expected.index;
    };
    const auto lower = [](const Pair& left, const Pair& right) {
        return left.index < right.index ? left : right;
    };
    check_on_every_target(Definition<Pair>{OperatorKind::minloc, type,
                                           [&](const Pair& left, const Pair& right) {
                                               if (left.value == right.value) {
                                                   return lower(left, right);
                                               }
                                               return left.value < right.value ? left : right;
                                           },
                                           agrees},
                          next);
    check_on_every_target(Definition<Pair>{OperatorKind::maxloc, type,
                                           [&](const Pair& left, const Pair& right) {
                                               if (left.value == right.value) {
                                                   return lower(left, right);
                                               }
                                               return left.value > right.value ? left : right;
                                           },
                                           agrees},
                          next);
}

template <typename T>
void check_complex(ElementType type) {
    using Complex = std::array<T, 2>;
    std::mt19937_64 random(5);
    const auto part = [&] {
        return static_cast<T>(static_cast<double>(random() % 2001) / 7 - 143);
    };
    const auto next = [&] { return Complex{part(), part()}; };
    const auto agrees = [](const Complex& result, const Complex& expected) {
        return std::memcmp(&result, &expected, sizeof(Complex)) == 0;
    };
    check_on_every_target(Definition<Complex>{OperatorKind::sum, type,
                                              [](Complex a, Complex b) {
                                                  return Complex{a[0] + b[0], a[1] + b[1]};
                                              },
                                              agrees},
                          next);
    check_on_every_target(
        Definition<Complex>{
            OperatorKind::prod, type,
            [](Complex a, Complex b) {
                return Complex{a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]};
            },
            agrees},
        next);
}

TEST_CASE("operators: 16-bit floats are rounded to nearest", "[operators]") {
    check_format(Format(5, 10), ElementType::float16);
    check_format(Format(8, 7), ElementType::bfloat16);
}

TEST_CASE("operators: every half times one is itself", "[operators]") {
    std::vector<std::uint16_t> all(1U << 16U);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<std::uint16_t>(i);
    }
    const Format format(5, 10);
    const std::vector<std::uint16_t> ones(all.size(), 0x3C00);
    const std::array<const std::byte*, 2> operands = {
        reinterpret_cast<const std::byte*>(all.data()),
        reinterpret_cast<const std::byte*>(ones.data())};
    std::vector<std::uint16_t> product(all.size());
    find_operator(OperatorKind::prod, ElementType::float16)(
        nullptr, operands.data(), 2, reinterpret_cast<std::byte*>(product.data()),
        2 * product.size());
    bool same = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
        same =
            same && (product[i] == all[i] || (format.is_nan(all[i]) && format.is_nan(product[i])));
    }
    CHECK(same);
}

TEST_CASE("operators: complex numbers", "[operators]") {
    check_complex<float>(ElementType::complex64);
    check_complex<double>(ElementType::complex128);
}

TEST_CASE("operators: pairs know where the extremum was", "[operators]") {
    check_pairs<std::int16_t, std::int32_t>(ElementType::int16_int32);
    check_pairs<std::int32_t, std::int32_t>(ElementType::int32_int32);
    check_pairs<std::int64_t, std::int32_t>(ElementType::int64_int32);
    check_pairs<float, std::int32_t>(ElementType::float32_int32);
    check_pairs<double, std::int32_t>(ElementType::float64_int32);
    check_pairs<std::int64_t, std::int64_t>(ElementType::int64_int64);
    check_pairs<double, std::int64_t>(ElementType::float64_int64);
}

TEST_CASE("operators: what has no meaning has no kernel", "[operators]") {
    for (const ElementType type : {ElementType::complex64, ElementType::complex128}) {
        CHECK(find_operator(OperatorKind::min, type) == nullptr);
        CHECK(find_operator(OperatorKind::band, type) == nullptr);
        CHECK(find_operator(OperatorKind::minloc, type) == nullptr);
    }
    for (const OperatorKind op : {OperatorKind::sum, OperatorKind::max, OperatorKind::bxor}) {
        CHECK(find_operator(op, ElementType::int32_int32) == nullptr);
    }
    CHECK(find_operator(OperatorKind::land, ElementType::float16) == nullptr);
    CHECK(find_operator(OperatorKind::minloc, ElementType::float64) == nullptr);
}

} // namespace
} // namespace ucg::engine
