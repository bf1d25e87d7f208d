#include "ucg_coll/capi/wireup/wireup.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/network.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/places.hpp"
#include "ucg_coll/capi/wireup/profile_agreement.hpp"
#include "ucg_coll/capi/wireup/shared_memory.hpp"

namespace ucg::capi {
namespace {

class Wireup {
  public:
    Wireup(Context& context, const ucg_group_params_t& params)
        : context_(context), peers_(context, params), shared_memory_(context, peers_, group_) {}

    ~Wireup() {
        if (!agreed_) {
            shared_memory_.break_off();
        }
    }
    Wireup(const Wireup&) = delete;
    Wireup& operator=(const Wireup&) = delete;

    Status run(const MakeGroup& make_group) {
        Status status = agree();
        if (status.ok()) {
            status = make(make_group);
        }
        agreed_ = !peers_.interrupted();
        if (!status.ok()) {
            // A program that makes many groups need not hear for each what they all lack.
            const bool first = context_.first(Context::Once::no_group);
            log(first && peers_.speaks() ? LogLevel::error : LogLevel::info, "{}",
                status.message());
        }
        return status;
    }

  private:
    /// All exchanges but the last one over a network.
    Status agree() {
        if (Status status = say_hello(); !status.ok()) {
            return status;
        }
        const Result<bool> shared = shared_memory_.connect();
        if (!shared.ok()) {
            return shared.status();
        }
        if (!group_.several_hosts() && *shared) {
            return {};
        }
        network_.emplace(context_, peers_, group_, one_kernel_);
        return network_->exchange();
    }

    /// What each rank does by itself, and may fail at.
    Status make(const MakeGroup& make_group) {
        bool made = false;
        Status mine;
        try {
            mine = make_alone(make_group);
            made = mine.ok();
        } catch (const std::bad_alloc&) {
            if (!network_) {
                throw;
            }
        }
        return network_ ? network_->agree(made, mine) : mine;
    }

    Status make_alone(const MakeGroup& make_group) {
        if (network_) {
            if (Status status = network_->make_transport(); !status.ok()) {
                return status;
            }
        }
        route();
        shared_memory_.remember_options();
        make_group(group_);
        return {};
    }

    Status say_hello() {
        Hello mine = hello_of(context_, peers_.count());
        shared_memory_.guess(mine);
        Result<std::vector<Hello>> all = peers_.allgather(mine);
        if (!all.ok()) {
            return all.status();
        }
        if (Status status = compare(*all, context_.machine(), peers_); !status.ok()) {
            return status;
        }
        Result<cost::Profile> profile = agree_on_profile(context_, peers_, *all);
        if (!profile.ok()) {
            return profile.status();
        }
        group_.profile = *profile;
        agree_on_copies(*all, group_.profile.memory);
        place_ranks(*all);
        place_machines(*all);
        shared_memory_.agree(*all);
        return {};
    }

    void place_ranks(const std::vector<Hello>& all) {
        if (peers_.is_first(all, Context::Once::unknown_host,
                            [](const Hello& hello) { return hello.host == 0; })) {
            log(LogLevel::warn, "{}: {}: rank {} of {} counts as a host of its own",
                context_.name(), context_.process_facts().host.status().message(), peers_.rank(),
                peers_.count());
        }
        Places places = places_of(all, peers_.rank());
        group_.placement = std::move(places.placement);
        group_.ranks_per_cpu = places.ranks_per_cpu;
        group_.load = std::max(context_.host_load(), places.load);
        one_kernel_ = places.one_kernel;
    }

    /// Finds the ranks' machines in a schedule that was loaded, or one rank says why not.
    void place_machines(const std::vector<Hello>& all) {
        const std::vector<TopologyEnd> ends = ends_of(all, &Hello::phases);
        PhasesVerdict verdict = agree_on_phases(context_.phases(), ends);
        group_.ranks_of_phases = std::move(verdict.ranks);
        if (verdict.speaker != kNoRank &&
            peers_.is_first(verdict.speaker, Context::Once::no_phases)) {
            log(LogLevel::warn, "{}: {}. All ranks do without this schedule", context_.name(),
                verdict.reason);
        }
    }

    /// By which transport each rank is reached.
    void route() {
        group_.routes.assign(peers_.count(), group_.ucx.get());
        if (group_.shm != nullptr) {
            for (const Rank local : group_.local_ranks(peers_.rank())) {
                group_.routes[static_cast<std::size_t>(local)] = group_.shm.get();
            }
        }
        group_.routes[static_cast<std::size_t>(peers_.rank())] = nullptr;
    }

    Context& context_;
    Peers peers_;
    WiredGroup group_;
    SharedMemoryWireup shared_memory_;
    std::optional<NetworkWireup> network_; ///< If the group needs one.
    bool one_kernel_ = false;              ///< All ranks are on hosts of one.
    bool agreed_ = false;                  ///< All ranks have come to the same end.
};

} // namespace

Status wire_up(Context& context, const ucg_group_params_t& params, const MakeGroup& make_group) {
    return Wireup(context, params).run(make_group);
}

} // namespace ucg::capi
