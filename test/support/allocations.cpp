#include "test/support/allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// Returns null when there is no memory.
void* try_allocate(std::size_t bytes, std::size_t alignment) {
    void* memory = nullptr;
    const bool may = ucg::test::may_allocate();
    return may && posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) == 0 ? memory
                                                                                  : nullptr;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
    void* memory = try_allocate(bytes, alignment);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

} // namespace

// These operators serve the whole process. They are not inline: gcc would see only one half of a
// pair and take it for a mismatch. The forms that do not throw are replaced as well, since
// std::stable_sort uses them and sanitizers' libraries would serve them otherwise.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    return allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
    return allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes,
                                     const std::nothrow_t& /*nothrow*/) noexcept {
    return try_allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes,
                                       const std::nothrow_t& /*nothrow*/) noexcept {
    return try_allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/,
                                       std::align_val_t /*alignment*/) noexcept {
    std::free(memory);
}
