// A process's end of UCX, and what it knows of networks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/group_list.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/transport/transport.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::capi {

/// The time of a short message between hosts that groups plan by (cost::listed_message_ns), for
/// each kind of network. Trivially copyable: it travels as bytes.
struct LearnedNetworks {
    struct Known {
        std::uint32_t known = 0;
        double message_ns = 0;
    };
    std::array<Known, cost::kNetworks.size()> by_kind = {};

    Known& of(cost::NetworkKind kind) { return by_kind[static_cast<std::size_t>(kind)]; }
    const Known& of(cost::NetworkKind kind) const {
        return by_kind[static_cast<std::size_t>(kind)];
    }
};

/// Whoever uses it holds the context's maker(), except in disconnect(). Once UCX is started, the
/// list of groups drives it as well.
class ContextNetwork {
  public:
    /// `groups` must not make progress any more when the object ends.
    ContextNetwork(transport::ucx::UcxOptions options, GroupList& groups)
        : options_(std::move(options)), groups_(groups) {}

    /// Returns this process's end of UCX, which is started at first use: a program whose ranks are
    /// all on one host never pays for it. If it could not be started it is not tried again by every
    /// group. `link_bytes_per_second`: what this host's link carries, where that matters to the
    /// first group; else 0.
    Result<transport::ProcessNetwork*> start(std::uint64_t link_bytes_per_second);
    /// Returns it if it has been started, else null.
    const transport::ProcessNetwork* at_hand() const { return network_.get(); }
    /// Returns the number by which this process is going to know a group over UCX, another one each
    /// time.
    std::uint32_t take_group_id() { return next_group_id_++; }
    /// What the latest group that looked has found out about networks that nobody has measured.
    LearnedNetworks& learned() { return learned_; }
    /// Disconnects from all peers. Nothing else is done with the context meanwhile.
    void disconnect();

  private:
    transport::ucx::UcxOptions options_;
    GroupList& groups_;
    std::unique_ptr<transport::ProcessNetwork> network_;
    Status failure_; ///< Why UCX could not start.
    std::uint32_t next_group_id_ = 1;
    LearnedNetworks learned_;
};

} // namespace ucg::capi
