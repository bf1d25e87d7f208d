// Prices the schedules of all ranks together: the very values that the engine executes, as the
// engine executes them. Each rank issues its ops in order, waits before each op until what it
// depends on has completed, and leaves when all its messages have completed. What is simulated:
//
//   processor  does one thing at a time: issuing a message, taking one in, copying, combining,
//              sharing. A message that has arrived is taken in when the rank first waits for it, in
//              order of arrival; so is a peer's flag slot.
//   port       one per rank, for its messages on their way out, in order; see cost::MessageTerms.
//   memory     of a rank: the more peers read it at the same time, the longer each takes; see
//              Memory.
//   host link  if there is one, the ranks of a host share it to and from other hosts, first come,
//              first served.
//   links      of a tree of switches are shared likewise, and a message passes one after another. A
//              message whose first bytes have come goes on as the last ones follow (cut through).
//              With such links a send completes when its message has arrived, as by a rendezvous.
//
// For a factored schedule under the (pipelining) postal model the result is exactly the closed
// form, cost::factored_ns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/network.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/sim/prices.hpp"
#include "ucg_coll/sim/random.hpp"
#include "ucg_coll/sim/trace.hpp"

namespace ucg::sim {

struct Options {
    NetworkModel network;
    Compute compute;
    Memory memory;
    std::optional<HostLink> host_link; ///< None: hosts' links are never in the way.
    /// The tree of switches between hosts, instead of host links; none: it is never in the way.
    std::optional<graph::SwitchTree> links;
    Distribution message_noise;     ///< Added to the flight of each message, and of a share to each
                                    ///< reader.
    Distribution compute_noise;     ///< Added to each copy, reduction, publish and share.
    Distribution skew;              ///< When each rank enters.
    std::vector<double> arrival_ns; ///< Added to `skew`, by rank; empty: nothing.
    /// How many times the collective runs; at least 1. Each rank begins one as soon as it is done
    /// with the one before. The outcome is that of all of them together.
    std::uint32_t in_a_row = 1;
};

/// Checks that the parameters are in range, and that `arrival_ns` is empty or has an element for
/// each of `rank_count` ranks.
Status check(const Options& options, Rank rank_count);

struct Outcome {
    std::vector<Picoseconds> entered; ///< By rank.
    std::vector<Picoseconds> finish;  ///< By rank, on the same clock.
    std::uint64_t message_count = 0;  ///< Signals included.
    std::uint64_t message_bytes = 0;
    std::uint64_t share_count = 0; ///< How many flag slots were written.
    std::uint64_t poll_count = 0;  ///< How often ranks took a flag slot in.
    std::uint64_t peer_bytes = 0;  ///< Bytes read out of peers' memory, flag slots aside.

    /// Returns when the last rank is done. The clock begins at 0; no rank enters earlier.
    Picoseconds completion() const;
};

/// What tells when each rank is done: this folder's own prices, or SimGrid's (simgrid/).
class Pricing {
  public:
    virtual ~Pricing() = default;
    Pricing(const Pricing&) = delete;
    Pricing& operator=(const Pricing&) = delete;

    /// Adds the schedule of the next rank, from rank 0 on. REQUIRES: schedule.rank is that rank,
    /// and it is one of the placement's.
    virtual void add(const graph::Schedule& schedule) = 0;
    /// Returns when each rank is done, and fills `trace` if it is not null. REQUIRES: every rank
    /// has been added.
    virtual Result<Outcome> run(std::uint64_t seed, Trace* trace) const = 0;

  protected:
    Pricing() = default;
};

/// The length of a rank's input and output, of which its ops mostly touch a part.
struct OwnBuffers {
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    bool exposed = false; ///< As in the schedule: peers name slices of this rank's memory.
};

/// The programs of all ranks, which can be run under any number of seeds. Not thread-safe.
class Simulator final : public Pricing {
  public:
    /// Both arguments are borrowed. REQUIRES: check(options, placement.rank_count()).ok().
    Simulator(const topo::Placement& placement, const Options& options);

    /// Lowers the schedule and keeps the result, in time and memory in proportion to its ops.
    /// REQUIRES: graph::check_limits(schedule).
    void add(const graph::Schedule& schedule) override;

    /// Simulates one run; the result is the same each time for a seed. Fails with invalid_argument
    /// if the programs do not fit together (a message that is never sent or never received, or is
    /// received with another length; ranks that wait for one another or for a share that does not
    /// come; ranks of two hosts that read one another's memory) or run until kTimeEnd. A trace
    /// takes about 100 bytes for each op.
    Result<Outcome> run(std::uint64_t seed, Trace* trace = nullptr) const override;

    const std::vector<graph::LoweredSchedule>& programs() const { return programs_; }

  private:
    const topo::Placement& placement_;
    const Options& options_;
    std::vector<graph::LoweredSchedule> programs_;
    std::vector<OwnBuffers> buffers_;
};

} // namespace ucg::sim
