// Which segments this process has mapped: each once, whichever of its heaps asks. Ranks as threads
// then see one address for each byte, which a thread sanitizer needs in order to see anything.
// Internal to shm.
#pragma once

#include <functional>
#include <memory>

#include "shm/segment.hpp"
#include "shm/token.hpp"

namespace ucg::shm {

/// Says that this process has made the segment with that token.
void note_mapping(const Token& token, const std::shared_ptr<SharedSegment>& segment);

using MakeSegment = std::function<Result<std::unique_ptr<SharedSegment>>()>;

/// Returns the mapping of the segment with that token, which has so many bytes: the one that there
/// is, or the one that `make` makes.
Result<std::shared_ptr<SharedSegment>> map_once(const Token& token, std::uint64_t bytes,
                                                const MakeSegment& make);

/// Calls `release`, which lets go of mappings, under a lock: the one that lets go of a mapping last
/// ends it after all the others' last use.
void let_go(const std::function<void()>& release);

} // namespace ucg::shm
