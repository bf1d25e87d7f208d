// FNV-1a: a hash that is the same on every rank, build and run, for comparing the inputs of plans
// across a group. It is not for untrusted keys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace ucg {

class Hash {
  public:
    Hash& bytes(std::string_view text) {
        for (const char c : text) {
            step(static_cast<unsigned char>(c));
        }
        return *this;
    }

    template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T> Hash& value(T v) {
        auto bits = static_cast<std::uint64_t>(v);
        for (int i = 0; i < 8; ++i) {
            step(static_cast<unsigned char>(bits & 0xff));
            bits >>= 8;
        }
        return *this;
    }

    template <typename T>
    Hash& values(std::span<const T> items) {
        value(items.size());
        for (const T& item : items) {
            value(item);
        }
        return *this;
    }

    std::uint64_t digest() const { return state_; }

  private:
    void step(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
    std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

} // namespace ucg
