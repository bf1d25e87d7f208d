#include "perf/perftest/collectives/host_identity.hpp"

#include "shm/host.hpp"

namespace ucg::perftest {

std::uint64_t host_identity() {
    const Result<shm::HostFacts> facts = shm::read_host_facts();
    return facts.ok() ? shm::identity(*facts) : 0;
}

} // namespace ucg::perftest
