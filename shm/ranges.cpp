#include "shm/ranges.hpp"

#include <algorithm>
#include <utility>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

Ranges::Ranges(std::uint64_t size) : free_bytes_(size) {
    if (size > 0) {
        free_.emplace(0, size);
    }
}

std::optional<std::uint64_t> Ranges::take(std::uint64_t size) {
    UCG_ASSERT(size > 0);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [size](const auto& range) { return range.second >= size; });
    if (found == free_.end()) {
        return std::nullopt;
    }
    const auto [offset, length] = *found;
    free_.erase(found);
    if (length > size) {
        free_.emplace(offset + size, length - size);
    }
    free_bytes_ -= size;
    return offset;
}

std::optional<std::uint64_t> Ranges::take_last(std::uint64_t size) {
    UCG_ASSERT(size > 0);
    const auto found = std::find_if(free_.rbegin(), free_.rend(),
                                    [size](const auto& range) { return range.second >= size; });
    if (found == free_.rend()) {
        return std::nullopt;
    }
    free_bytes_ -= size;
    const std::uint64_t left = found->second - size;
    const std::uint64_t offset = found->first + left;
    if (left == 0) {
        free_.erase(found->first);
    } else {
        found->second = left;
    }
    return offset;
}

/// Changes nothing if there is no memory for one more range.
void Ranges::give_back(std::uint64_t offset, std::uint64_t size) {
    const auto next = free_.upper_bound(offset);
    UCG_ASSERT(next == free_.end() || offset + size <= next->first);
    const bool meets_next = next != free_.end() && offset + size == next->first;
    const auto before = next == free_.begin() ? free_.end() : std::prev(next);
    UCG_ASSERT(before == free_.end() || before->first + before->second <= offset);
    if (before != free_.end() && before->first + before->second == offset) {
        before->second += size;
        if (meets_next) {
            before->second += next->second;
            free_.erase(next);
        }
    } else if (meets_next) {
        auto longer = free_.extract(next);
        longer.key() = offset;
        longer.mapped() += size;
        free_.insert(std::move(longer));
    } else {
        free_.emplace_hint(next, offset, size);
    }
    free_bytes_ += size;
}

std::uint64_t Ranges::largest_free() const {
    std::uint64_t largest = 0;
    for (const auto& [offset, size] : free_) {
        largest = std::max(largest, size);
    }
    return largest;
}

} // namespace ucg::shm
