#include "test/support/scarce_memory.hpp"

#include "test/support/allocations.hpp"

namespace ucg::test {

thread_local std::uint64_t allocations_left = kNever;

bool may_allocate() {
    return allocations_left == kNever || allocations_left-- > 0;
}

} // namespace ucg::test
