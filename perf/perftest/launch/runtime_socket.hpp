// Processes that find one another by TCP, as ucx_perftest's do: a server waits at a port, and
// clients know its host.
#pragma once

#include <memory>
#include <string>

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// The address of the server.
struct SocketPlace {
    std::string host; ///< The server's host, for a client; empty on the server.
    std::uint32_t port = 13337;
    bool ipv6 = false;
};

/// A star of connections with the server, rank 0, in the middle. When a peer is lost while nothing
/// is exchanged, as in a measurement, the process says so on standard error and exits with status
/// 1.
class SocketRuntime : public Runtime {
  public:
    /// Tells all that the run is over: peers that leave from then on do not count as lost.
    /// Collective.
    virtual Status farewell() = 0;
};

/// Makes rank 0 of `size`. Waits, without a limit, until all clients have connected, and prints
/// each of them on standard output. A client that is not a rank of this program, or of another
/// version, is told so, and the wait goes on.
Result<std::unique_ptr<SocketRuntime>> serve(const SocketPlace& place, Rank size);

/// Makes another rank, whose number the server assigns. Fails with the host's or the port's name
/// and the reason.
Result<std::unique_ptr<SocketRuntime>> connect(const SocketPlace& place);

} // namespace ucg::perftest
