#include "ucg_coll/plan/parts/block_map.hpp"

#include <algorithm>
#include <utility>

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

BlockMap BlockMap::equal(Slice buffer, Rank count, std::uint64_t block_bytes) {
    UCG_ASSERT(buffer.length == checked_multiply(static_cast<std::uint64_t>(count), block_bytes));
    BlockMap map;
    map.buffer_ = buffer;
    map.block_bytes_ = block_bytes;
    map.count_ = count;
    return map;
}

BlockMap BlockMap::cut(Slice buffer, Rank count, std::uint64_t unit) {
    BlockMap map;
    map.buffer_ = buffer;
    map.block_bytes_ = cut_bytes(buffer.length, count, unit);
    map.count_ = count;
    return map;
}

BlockMap BlockMap::vectors(Slice buffer, const graph::Blocks& blocks) {
    std::vector<Slice> slices;
    slices.reserve(blocks.bytes.size());
    for (std::size_t i = 0; i < blocks.bytes.size(); ++i) {
        Slice slice = buffer;
        slice.offset = checked_add(buffer.offset, blocks.offsets[i]);
        slice.length = blocks.bytes[i];
        slices.push_back(slice);
    }
    return of(std::move(slices));
}

BlockMap BlockMap::end_to_end(Slice buffer, std::span<const std::uint64_t> bytes) {
    std::vector<Slice> slices;
    slices.reserve(bytes.size());
    for (const std::uint64_t length : bytes) {
        buffer.length = length;
        slices.push_back(buffer);
        buffer.offset += length;
    }
    return of(std::move(slices));
}

BlockMap BlockMap::of(std::vector<Slice> blocks) {
    BlockMap map;
    map.count_ = static_cast<Rank>(blocks.size());
    map.slices_ = std::move(blocks);
    return map;
}

Slice BlockMap::block(Rank index) const {
    UCG_DEBUG_ASSERT(index >= 0 && index < count_);
    if (!slices_.empty()) {
        return slices_[static_cast<std::size_t>(index)];
    }
    return part(buffer_, offset(index), offset(index + 1) - offset(index));
}

std::uint64_t BlockMap::bytes_max() const {
    std::uint64_t longest = std::min(block_bytes_, buffer_.length);
    for (const Slice& slice : slices_) {
        longest = std::max(longest, slice.length);
    }
    return longest;
}

std::vector<Slice> BlockMap::runs(Rank first, Rank count) const {
    std::vector<Slice> result;
    if (slices_.empty()) {
        const Rank before_end = std::min(count, count_ - first);
        const auto append = [&](Rank begin, Rank end) {
            append_slice(result, part(buffer_, offset(begin), offset(end) - offset(begin)));
        };
        append(first, first + before_end);
        append(0, count - before_end);
        return result;
    }
    for (Rank i = 0; i < count; ++i) {
        append_slice(result, block((first + i) % count_));
    }
    return result;
}

std::uint64_t BlockMap::run_bytes(Rank first, Rank count) const {
    if (slices_.empty()) {
        const Rank before_end = std::min(count, count_ - first);
        return offset(first + before_end) - offset(first) + offset(count - before_end);
    }
    std::uint64_t sum = 0;
    for (Rank i = 0; i < count; ++i) {
        sum = checked_add(sum, bytes((first + i) % count_));
    }
    return sum;
}

std::uint64_t total_bytes(std::span<const Slice> slices) {
    std::uint64_t sum = 0;
    for (const Slice& slice : slices) {
        sum = checked_add(sum, slice.length);
    }
    return sum;
}

void append_slice(std::vector<Slice>& slices, const Slice& slice) {
    if (slice.length == 0) {
        return;
    }
    if (!slices.empty()) {
        Slice& last = slices.back();
        if (last.owner == slice.owner && last.buffer == slice.buffer &&
            last.end() == slice.offset) {
            last.length += slice.length;
            return;
        }
    }
    slices.push_back(slice);
}

void pack(Builder& builder, std::span<const Slice> sources, Slice target) {
    UCG_ASSERT(total_bytes(sources) == target.length);
    std::uint64_t offset = 0;
    for (const Slice& source : sources) {
        builder.copy(source, part(target, offset, source.length));
        offset += source.length;
    }
}

Slice landing_place(Builder& builder, std::span<const Slice> targets) {
    return targets.size() == 1 ? targets.front() : builder.scratch(total_bytes(targets));
}

void unpack(Builder& builder, Slice source, std::span<const Slice> targets) {
    UCG_ASSERT(total_bytes(targets) == source.length);
    std::uint64_t offset = 0;
    for (const Slice& target : targets) {
        builder.copy(part(source, offset, target.length), target);
        offset += target.length;
    }
}

Slice packed(Builder& builder, std::span<const Slice> sources) {
    if (sources.size() == 1) {
        return sources.front();
    }
    const Slice target = builder.scratch(total_bytes(sources));
    pack(builder, sources, target);
    return target;
}

} // namespace ucg::plan
