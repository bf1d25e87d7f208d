// The public header in C++, strictly: that it compiles, in the order of a user's includes, is the
// test. It is linked to nothing.
#include <ucg/ucg.h>

#ifndef UCG_API_VERSION
#error "no version"
#endif
