// Two-level alltoall: one message for each ordered pair of hosts instead of one for each pair of
// their ranks. Every other host has a delegate on this one, so that many ranks of a host send and
// receive at a time: it collects what its host's ranks have for that host, exchanges it with the
// delegate there, and deals out what came. Each block crosses the network once. Kumar, Mamidala,
// Panda, "Scaling alltoall collective on multi-core systems", 2008, has one leader for all.
#include <algorithm>

#include "ucg_coll/plan/levels/delegates.hpp"
#include "ucg_coll/plan/levels/host_blocks.hpp"
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Scratch for several slices, used again by one stage after the other.
class Room {
  public:
    /// `slices`: how many slices a stage takes at most, `bytes`: their length together.
    Room(Builder& builder, std::uint64_t bytes, std::uint64_t slices)
        : builder_(&builder), all_(builder.scratch(bytes + slices * kCacheLine)) {}

    /// Makes the room free for the next stage.
    void clear() { taken_ = 0; }

    Slice take(std::uint64_t bytes) {
        const Slice slice = part(all_, taken_, bytes);
        taken_ += round_up(bytes, kCacheLine);
        return slice;
    }
    /// Like packed() and landing_place(), with this room in place of new scratch.
    Slice packed(std::span<const Slice> sources) {
        if (sources.size() == 1) {
            return sources.front();
        }
        const Slice target = take(total_bytes(sources));
        pack(*builder_, sources, target);
        return target;
    }
    Slice landing_place(std::span<const Slice> targets) {
        return targets.size() == 1 ? targets.front() : take(total_bytes(targets));
    }

  private:
    Builder* builder_;
    Slice all_;
    std::uint64_t taken_ = 0;
};

/// One rank's part.
class Exchange {
  public:
    Exchange(Builder& builder, const Facts& facts, const graph::Request& request, Rank rank)
        : builder_(builder), delegates_(facts, rank),
          team_(Team::of(delegates_.ranks(), facts.placement.index_on_host(rank))),
          source_(request.in_place ? set_aside(builder, Team::whole(request.rank_count, rank),
                                               output_blocks(builder, request))
                                   : input_blocks(builder, request)),
          target_(output_blocks(builder, request)), block_bytes_(uniform_bytes(request)),
          hosts_(delegates_.hosts_of(team_.index())), served_(delegates_.ranks_of(hosts_).size()),
          messages_(builder, std::max(all_of_host(served_), target_.run_bytes(0, target_.count())),
                    delegates_.ranks().size() + hosts_.size()),
          blocks_(builder, all_of_host(served_ + 1), delegates_.ranks().size()) {
        std::uint64_t ranks = 0;
        for (const std::uint32_t host : hosts_) {
            ranks_before_.push_back(ranks);
            ranks += delegates_.size_of(host);
        }
    }

    void run() {
        collect();
        swap();
        deal_out();
    }

  private:
    /// Collects what each rank of this host has for the hosts that this delegate serves: block by
    /// block, host after host.
    void collect() {
        std::vector<Slice> leaving;
        leaving.reserve(delegates_.ranks().size());
        for (Rank index = 0; index < team_.size(); ++index) {
            Room& room = index == team_.index() ? blocks_ : messages_;
            leaving.push_back(blocks_for(delegates_.hosts_of(index), room));
        }
        const Slice own = leaving[static_cast<std::size_t>(team_.index())];
        for (Rank index = 0; index < team_.size(); ++index) {
            collected_.push_back(index == team_.index() ? own : blocks_.take(own.length));
        }
        alltoall_rotated(builder_, team_, BlockMap::of(std::move(leaving)),
                         BlockMap::of(collected_), kWindow);
    }

    /// Returns this rank's blocks for the ranks of these hosts, in one slice, maybe in `room`.
    Slice blocks_for(std::span<const std::uint32_t> hosts, Room& room) const {
        std::vector<Slice> blocks;
        for (const Rank rank : delegates_.ranks_of(hosts)) {
            append_slice(blocks, source_.block(rank));
        }
        return room.packed(blocks);
    }

    /// Exchanges messages with the delegates of other hosts. Each step sends to the host at a
    /// distance above this one and receives from the host as far below. As in alltoall_rotated()
    /// there is a window, and ops wait for lower steps only.
    void swap() {
        messages_.clear();
        arrived_.resize(delegates_.host_count());
        MessageWindow sent(kWindow);
        MessageWindow received(kWindow);
        for (std::uint32_t distance = 1; distance < delegates_.host_count(); ++distance) {
            const std::uint32_t to = delegates_.host_at(distance);
            const std::uint32_t from = delegates_.host_at(delegates_.host_count() - distance);
            if (is_mine(from)) {
                Slice& landing = arrived_[from];
                landing = builder_.scratch(delegates_.size_of(from) * all_of_host(1));
                received.push({builder_.recv(delegates_.rank(from, delegates_.host()), landing,
                                             received.after())});
            }
            if (is_mine(to)) {
                sent.push({builder_.send(delegates_.rank(to, delegates_.host()),
                                         messages_.packed(collected_for(to)), sent.after())});
            }
        }
    }

    /// Is this rank the delegate for that host?
    bool is_mine(std::uint32_t host) const {
        return delegates_.index(delegates_.host(), host) == team_.index();
    }
    /// Returns the length of `blocks` blocks for each rank of this host.
    std::uint64_t all_of_host(std::size_t blocks) const {
        return delegates_.ranks().size() * blocks * block_bytes_;
    }

    /// Returns what was collected for that host, of which this rank is the delegate.
    std::vector<Slice> collected_for(std::uint32_t host) const {
        const auto place = std::lower_bound(hosts_.begin(), hosts_.end(), host) - hosts_.begin();
        const std::uint64_t before = ranks_before_[static_cast<std::size_t>(place)] * block_bytes_;
        std::vector<Slice> slices;
        for (const Slice& blocks : collected_) {
            append_slice(slices, part(blocks, before, delegates_.size_of(host) * block_bytes_));
        }
        return slices;
    }

    /// Sends each rank of this host what came for it, and this rank's own block for it.
    void deal_out() {
        messages_.clear();
        blocks_.clear();
        std::vector<Slice> leaving(delegates_.ranks().size());
        std::vector<Slice> coming(delegates_.ranks().size());
        for (Rank index = 0; index < team_.size(); ++index) {
            if (index != team_.index()) {
                const auto place = static_cast<std::size_t>(index);
                leaving[place] = blocks_.packed(runs(blocks_that_came(index)));
                coming[place] = messages_.landing_place(runs(places_of(index)));
            }
        }
        alltoall_rotated(builder_, team_, BlockMap::of(std::move(leaving)), BlockMap::of(coming),
                         kWindow);
        copy_own();
        for (Rank index = 0; index < team_.size(); ++index) {
            if (index != team_.index()) {
                unpack(builder_, coming[static_cast<std::size_t>(index)], runs(places_of(index)));
            }
        }
    }

    /// Returns the blocks for the rank of this host at `index`: those from each rank of the hosts
    /// that this delegate serves, then this rank's own.
    std::vector<Slice> blocks_that_came(Rank index) const {
        std::vector<Slice> blocks;
        for (const std::uint32_t host : hosts_) {
            for (std::size_t there = 0; there < delegates_.size_of(host); ++there) {
                const std::uint64_t from = all_of_host(there);
                blocks.push_back(part(arrived_[host],
                                      from + static_cast<std::uint64_t>(index) * block_bytes_,
                                      block_bytes_));
            }
        }
        blocks.push_back(source_.block(team_.rank(index)));
        return blocks;
    }
    /// Returns where the blocks belong that the delegate at `index` deals out to this rank.
    std::vector<Slice> places_of(Rank index) const {
        std::vector<Slice> places;
        for (const Rank rank : delegates_.ranks_of(delegates_.hosts_of(index))) {
            places.push_back(target_.block(rank));
        }
        places.push_back(target_.block(team_.rank(index)));
        return places;
    }
    static std::vector<Slice> runs(std::span<const Slice> blocks) {
        std::vector<Slice> slices;
        for (const Slice& block : blocks) {
            append_slice(slices, block);
        }
        return slices;
    }

    void copy_own() {
        const std::vector<Slice> blocks = blocks_that_came(team_.index());
        const std::vector<Slice> places = places_of(team_.index());
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            builder_.copy(blocks[i], places[i]);
        }
    }

    Builder& builder_;
    Delegates delegates_;
    Team team_; ///< The ranks of this host.
    BlockMap source_;
    BlockMap target_;
    std::uint64_t block_bytes_;
    std::vector<std::uint32_t> hosts_; ///< Those that this delegate serves, by rising number.
    std::size_t served_;               ///< The number of their ranks.
    Room messages_; ///< What is sent, collecting and between hosts; then what is dealt out to here.
    Room blocks_;   ///< What was collected; then what is dealt out from here.
    std::vector<std::uint64_t> ranks_before_; ///< By place in hosts_: ranks of the hosts before.
    std::vector<Slice> collected_;            ///< By the sender's index on this host.
    std::vector<Slice> arrived_;              ///< By host.
};

/// Returns the price for a host of `ranks` ranks, which exchanges as many bytes with each other
/// host as it does on average.
double host_ns(const Facts& facts, Rank ranks, const graph::Request& request) {
    const std::uint64_t block = uniform_bytes(request);
    const auto others = static_cast<std::uint64_t>(facts.placement.host_count() - 1);
    const auto here = static_cast<std::uint64_t>(ranks);
    const std::uint64_t hosts_each = divide_up(others, here);
    const auto far_ranks = static_cast<std::uint64_t>(request.rank_count - ranks);
    // The blocks of one rank here for all ranks of another host.
    const std::uint64_t host_bytes = divide_up(far_ranks * block, others);
    const std::uint64_t all_bytes = static_cast<std::uint64_t>(request.rank_count) * block;
    const bool in_one_run = hosts_each == 1 && facts.placement.hosts_are_contiguous();
    const Swap swap = {.ranks = ranks,
                       .hosts = static_cast<Rank>(others),
                       .hosts_each = static_cast<Rank>(hosts_each),
                       .message_bytes = here * host_bytes};
    return on_host_exchange_ns(facts, ranks, hosts_each * host_bytes, in_one_run ? 0 : all_bytes) +
           contended_ns(facts, delegates_swap_ns(facts, swap), 1, block) +
           on_host_exchange_ns(facts, ranks, hosts_each * host_bytes + block, 2 * all_bytes);
}

/// The most bytes leave the host with most ranks, and the most messages leave a delegate of the
/// host with fewest.
double cost_ns(const Facts& facts, const graph::Request& request) {
    const Rank most = facts.placement.ranks_per_host_max();
    const Rank fewest = facts.placement.ranks_per_host_min();
    const double ns = host_ns(facts, most, request);
    return fewest == most ? ns : std::max(ns, host_ns(facts, fewest, request));
}

/// Returns at most how many blocks a rank has in scratch for blocks of any length: the rooms of
/// Exchange, what arrives between them, and what is set aside in place.
std::uint64_t blocks_in_scratch(const Facts& facts, const graph::Request& request) {
    const auto all = static_cast<std::uint64_t>(request.rank_count);
    const auto hosts = static_cast<std::uint32_t>(facts.placement.host_count());
    std::uint64_t served_for = 0; // Hosts that a delegate serves, times its host's ranks.
    for (std::uint32_t host = 0; host < hosts; ++host) {
        const std::uint64_t ranks = facts.placement.ranks_on(host).size();
        served_for = std::max(served_for, ranks * divide_up(hosts, ranks));
    }
    const auto ranks = static_cast<std::uint64_t>(facts.placement.ranks_per_host_max());
    const std::uint64_t served = served_for * ranks;
    return std::max(served, all) + served + ranks + served + (request.in_place ? all : 0);
}

/// Each block is copied several times on its way, so that ranks need scratch for more than their
/// buffers hold. Where blocks are long that gains nothing.
constexpr Need kModestScratch = {"copies of blocks that take at most 64 MiB",
                                 [](const Facts& facts, const graph::Request& request) {
                                     return blocks_in_scratch(facts, request) <=
                                            kScratchBytesMax /
                                                std::max<std::uint64_t>(1, uniform_bytes(request));
                                 }};
constexpr std::array kNeeds = {kSeveralHosts, kSharedHost, kModestScratch};

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAlltoallTwoLevel.name);
    Exchange(builder, facts, request, rank).run();
    return builder.finish();
}

} // namespace

const Algorithm kAlltoallTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::alltoall,
    .summary = "one message for each pair of hosts, by delegates that collect and deal out",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
