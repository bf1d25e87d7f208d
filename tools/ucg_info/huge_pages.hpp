// Whether blocks that libucg_heap.so serves lack the huge pages that ordinary memory may have.
#pragma once

namespace ucg::tools {

/// Returns whether this system gives huge pages to ordinary memory, unasked or where programs ask,
/// but never to shared memory.
bool shared_memory_lacks_huge_pages();

} // namespace ucg::tools
