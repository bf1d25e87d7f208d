// Replaces runtime_pmix.cpp in a build without PMIx.
#include <cstdlib>

#include "perf/perftest/launch/runtime_pmix.hpp"

namespace ucg::perftest {

bool pmix_is_there() {
    return std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr;
}

Result<std::unique_ptr<Runtime>> join_by_pmix() {
    return failure(Code::unsupported,
                   "this build has no PMIx: build with -Dpmix=enabled (Debian: libpmix-dev), or "
                   "use --np or --launcher socket");
}

} // namespace ucg::perftest
