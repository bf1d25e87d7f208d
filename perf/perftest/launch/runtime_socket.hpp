// Processes that find one another by TCP, as ucx_perftest's do: a server waits at a port, clients
// know its host.
#pragma once

#include <memory>
#include <string>

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// Where the server is.
struct SocketPlace {
    std::string host; ///< Of a client; the server has none.
    std::uint32_t port = 13337;
    bool ipv6 = false;
};

/// A star of connections with the server, rank 0, in the middle. When a peer is lost while nothing
/// is exchanged, amid a measurement, the process says so on standard error and exits with status 1.
class SocketRuntime : public Runtime {
  public:
    /// All have come to the end: peers that leave are not lost any more. Collective.
    virtual Status farewell() = 0;
};

/// Rank 0 of `size`: waits, without end, until all clients have come, and says on standard output
/// who came. Whoever is none of ours, or of another version, is told so, and waiting goes on.
Result<std::unique_ptr<SocketRuntime>> serve(const SocketPlace& place, Rank size);

/// Another rank: the server says which. Fails with the host's or the port's name and the reason.
Result<std::unique_ptr<SocketRuntime>> connect(const SocketPlace& place);

} // namespace ucg::perftest
