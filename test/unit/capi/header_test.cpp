// The public headers in C++, strictly: that they compile is the test. It is linked to nothing.
#include <ucg/ucg.h>
#include <ucg/ucg_calls.h>

#ifndef UCG_API_VERSION
#error "no version"
#endif
