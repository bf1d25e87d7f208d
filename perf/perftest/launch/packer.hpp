// Packs byte strings of any length into one, for an exchange of several addresses at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest {

class Packer {
  public:
    void add(std::string_view part) {
        const std::uint64_t bytes = part.size();
        add_number(bytes);
        text_.append(part);
    }
    void add_number(std::uint64_t number) {
        text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

/// Takes the parts out in the order in which they were added. The text must be whole and packed by
/// the same program on the same kind of machine.
class Unpacker {
  public:
    explicit Unpacker(std::string_view text) : text_(text) {}

    std::string next() {
        const std::uint64_t bytes = next_number();
        UCG_ASSERT(text_.size() >= bytes);
        std::string part(text_.substr(0, bytes));
        text_.remove_prefix(bytes);
        return part;
    }
    std::uint64_t next_number() {
        std::uint64_t number = 0;
        UCG_ASSERT(text_.size() >= sizeof(number));
        std::memcpy(&number, text_.data(), sizeof(number));
        text_.remove_prefix(sizeof(number));
        return number;
    }

  private:
    std::string_view text_;
};

} // namespace ucg::perftest
