#include "ucg_coll/capi/wireup/wireup.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "ucg_coll/capi/context.hpp"
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
    Wireup(Context& context, const GroupParams& params, WireupExchanges& exchanges)
        : context_(context), peers_(context.remarks(), params, exchanges),
          shared_memory_(context.memory(), context.latest_options(), context.config(), peers_,
                         group_, params.waits),
          attends_(params.attends) {}

    ~Wireup() {
        if (!agreed_) {
            shared_memory_.break_off();
            if (network_) {
                network_->break_off();
            }
        }
    }
    Wireup(const Wireup&) = delete;
    Wireup& operator=(const Wireup&) = delete;

    /// Begins no task between the last two exchanges over a network, which would take memory.
    Task<Status> run(const MakeGroup& make_group) {
        Status status = co_await agree();
        if (status.ok()) {
            const bool made = make(make_group, status);
            if (network_) {
                const Status told = co_await network_->tell(made);
                status = network_->agree(told, status);
            }
        }
        agreed_ = !peers_.interrupted();
        tell(status);
        co_return status;
    }

  private:
    /// Makes all exchanges but the last one over a network.
    Task<Status> agree() {
        const Status agreed = co_await say_hello();
        if (!agreed.ok()) {
            co_return agreed;
        }
        const Result<bool> shared = co_await shared_memory_.connect();
        if (!shared.ok()) {
            co_return shared.status();
        }
        if (!group_.several_hosts() && *shared) {
            co_return Status();
        }
        network_.emplace(context_.network(), context_.facts(), context_.config(), peers_, group_,
                         network_processes_, one_kernel_, attends_);
        co_return co_await network_->exchange();
    }

    /// Does what each rank does by itself. Returns false if that failed; then `mine` says why,
    /// where it is known.
    bool make(const MakeGroup& make_group, Status& mine) {
        try {
            mine = make_alone(make_group);
            return mine.ok();
        } catch (const std::bad_alloc&) {
            if (!network_) {
                throw;
            }
            return false;
        }
    }

    /// Logs a failure. A program that makes many groups need not hear for each what they all lack.
    void tell(const Status& status) {
        if (status.code() == Code::busy) {
            log(LogLevel::debug, "{}", status.message());
        } else if (!status.ok()) {
            const bool first = context_.remarks().first(Once::no_group);
            log(first && peers_.speaks() ? LogLevel::error : LogLevel::info, "{}",
                status.message());
        }
    }

    Status make_alone(const MakeGroup& make_group) {
        if (network_) {
            if (Status status = network_->make_transport(); !status.ok()) {
                return status;
            }
        }
        shared_memory_.remember_options();
        make_group(group_);
        return {};
    }

    Task<Status> say_hello() {
        Hello mine = hello_of(context_, static_cast<std::uint32_t>(peers_.rank()), peers_.count());
        shared_memory_.tell(mine);
        const Result<std::vector<Hello>> all = co_await peers_.allgather(mine);
        co_return all.ok() ? take_in(*all) : all.status();
    }

    Status take_in(const std::vector<Hello>& all) {
        if (Status status = compare(all, context_.config(), context_.facts().machine(), peers_);
            !status.ok()) {
            return status;
        }
        Result<cost::Profile> profile = agree_on_profile(context_.profile(), peers_, all);
        if (!profile.ok()) {
            return profile.status();
        }
        group_.profile = *profile;
        agree_on_copies(all, group_.profile.memory);
        place_ranks(all);
        place_machines(all);
        if (context_.network().at_hand() != nullptr) {
            for (const Hello& hello : all) {
                network_processes_.push_back(hello.network_process);
            }
        }
        return shared_memory_.agree(all);
    }

    void place_ranks(const std::vector<Hello>& all) {
        if (peers_.is_first(all, Once::unknown_host,
                            [](const Hello& hello) { return hello.host == 0; })) {
            log(LogLevel::warn, "{}: {}: rank {} of {} counts as a host of its own",
                context_.name(), context_.facts().host().status().message(), peers_.rank(),
                peers_.count());
        }
        Places places = places_of(all, peers_.rank());
        group_.placement = std::move(places.placement);
        group_.ranks_per_cpu = places.ranks_per_cpu;
        // The context knows only its own quota, which others of its processes may not share.
        CpuLoad host_load = context_.facts().host_load();
        host_load.cpus = std::max(host_load.cpus, places.host_cpus);
        group_.load = std::max(host_load, places.load);
        one_kernel_ = places.one_kernel;
    }

    /// Finds the ranks' machines in a schedule that was loaded, or has one rank say why not.
    void place_machines(const std::vector<Hello>& all) {
        const std::vector<TopologyEnd> ends = ends_of(all, &Hello::phases);
        PhasesVerdict verdict = agree_on_phases(context_.phases(), ends);
        group_.ranks_of_phases = std::move(verdict.ranks);
        if (verdict.speaker != kNoRank && peers_.is_first(verdict.speaker, Once::no_phases)) {
            log(LogLevel::warn, "{}: {}. All ranks do without this schedule", context_.name(),
                verdict.reason);
        }
    }

    Context& context_;
    Peers peers_;
    WiredGroup group_;
    SharedMemoryWireup shared_memory_;
    /// Hello::network_process by rank; empty where this rank has no UCX yet and knows nobody.
    std::vector<std::uint64_t> network_processes_;
    std::optional<NetworkWireup> network_; ///< If the group needs one.
    const bool attends_;
    bool one_kernel_ = false; ///< All ranks are on hosts under one kernel.
    bool agreed_ = false;     ///< All ranks have come to the same end.
};

} // namespace

Task<Status> wire_up(Context& context, const GroupParams& params, WireupExchanges& exchanges,
                     const MakeGroup& make_group) {
    Wireup wireup(context, params, exchanges);
    co_return co_await wireup.run(make_group);
}

} // namespace ucg::capi
