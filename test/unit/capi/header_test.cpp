// The public headers, compiled strictly as C++. That they compile is the test; nothing calls them.
#include <ucg/ucg.h>
#include <ucg/ucg_calls.h>

#ifndef UCG_API_VERSION
#error "no version"
#endif
