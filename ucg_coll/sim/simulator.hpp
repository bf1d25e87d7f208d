// Prices the schedules of all ranks together: the very values that the engine executes, as the
// engine executes them. Each rank issues its ops in order, waits before each until what it depends
// on has completed, and leaves when all its messages have.
//
//   processor  one thing at a time: issuing a message, taking one in, copying, combining, sharing.
//   A
//              message that has arrived is taken in when the rank first waits for it, in order of
//              arrival; so is a peer's flag slot.
//   port       one per rank, for its messages on their way out, in order; see cost::MessageTerms.
//   memory     of a rank: the more peers read it at a time, the longer each takes; see Memory.
//   host link  if there is one, the ranks of a host share it to and from other hosts, first come,
//              first served.
//   links      of a tree of switches, likewise, one after another on a message's way. A message
//              whose first bytes have come goes on as the last ones follow (cut through). With them
//              a send completes when its message has arrived, as by a rendezvous.
//
// For a factored schedule under the (pipelining) postal model that is the closed form,
// cost::factored_ns, exactly.
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
    Network network;
    Compute compute;
    Memory memory;
    std::optional<HostLink> host_link; ///< None: hosts' links are never in the way.
    /// The switches between hosts, instead of host links; none: they are never in the way.
    std::optional<graph::Network> links;
    Distribution message_noise;     ///< Added to the flight of each message, and of a share to each
                                    ///< reader.
    Distribution compute_noise;     ///< Added to each copy, reduction, publish and share.
    Distribution skew;              ///< When each rank enters.
    std::vector<double> arrival_ns; ///< Added to that, by rank; empty: nothing.
    /// So many of the collective follow one another, each rank beginning one as it is done with the
    /// one before; the outcome is of all of them. At least 1.
    std::uint32_t in_a_row = 1;
};

/// Are the parameters in range, and is `arrival_ns` empty or as long as `rank_count`?
Status check(const Options& options, Rank rank_count);

struct Outcome {
    std::vector<Picoseconds> entered; ///< By rank.
    std::vector<Picoseconds> finish;  ///< By rank, on the same clock.
    std::uint64_t message_count = 0;  ///< Signals included.
    std::uint64_t message_bytes = 0;
    std::uint64_t share_count = 0; ///< Flag slots that were written,
    std::uint64_t look_count = 0;  ///< and how often ranks took one in.
    std::uint64_t peer_bytes = 0;  ///< Read out of peers' memory, flag slots aside.

    /// When the last rank is done. Time 0 is where no rank enters earlier.
    Picoseconds completion() const;
};

/// Who tells when each rank is done: this folder's own prices, or SimGrid's (simgrid/).
class Pricing {
  public:
    virtual ~Pricing() = default;
    Pricing(const Pricing&) = delete;
    Pricing& operator=(const Pricing&) = delete;

    /// The schedule of the next rank, from 0 on. REQUIRES: schedule.rank is that rank, and it is
    /// one of the placement's.
    virtual void add(const graph::Schedule& schedule) = 0;
    /// `trace`, if not null, is filled. REQUIRES: every rank has been added.
    virtual Result<Outcome> run(std::uint64_t seed, Trace* trace) const = 0;

  protected:
    Pricing() = default;
};

/// How long a rank's vectors are, of which its ops mostly have a part.
struct OwnBuffers {
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
};

/// The ranks' programs, to be run under as many seeds as wanted. Not thread-safe.
class Simulator final : public Pricing {
  public:
    /// Both are borrowed. REQUIRES: check(options, placement.rank_count()).ok().
    Simulator(const topo::Placement& placement, const Options& options);

    /// What it is lowered to is kept. Takes time and memory in its ops.
    /// REQUIRES: graph::check_limits(schedule).
    void add(const graph::Schedule& schedule) override;

    /// Deterministic for a seed. Fails with invalid_argument where the programs do not fit together
    /// (a message that nobody receives, receives or of another length, ranks that wait for one
    /// another or for a share that does not come, ranks of two hosts that read one another's
    /// memory) or run beyond kTimeEnd. A trace takes about 100 bytes for each op.
    Result<Outcome> run(std::uint64_t seed, Trace* trace = nullptr) const override;

    const std::vector<graph::LoweredSchedule>& programs() const { return programs_; }

  private:
    const topo::Placement& placement_;
    const Options& options_;
    std::vector<graph::LoweredSchedule> programs_;
    std::vector<OwnBuffers> buffers_;
};

} // namespace ucg::sim
