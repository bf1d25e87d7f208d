// For programs of their own, in which allocations.cpp replaces operator new.
#pragma once

namespace ucg::test {

/// The program's own: called by each operator new of the process; if false, there is no memory. It
/// must not allocate.
bool may_allocate();

} // namespace ucg::test
