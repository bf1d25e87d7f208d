// For test programs in which allocations.cpp replaces operator new.
#pragma once

namespace ucg::test {

/// The test program defines this. Each operator new of the process calls it; if it returns false,
/// there is no memory. It must not allocate.
bool may_allocate();

} // namespace ucg::test
