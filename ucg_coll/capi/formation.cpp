#include "ucg_coll/capi/formation.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "ucg_coll/capi/formation_exchange.hpp"
#include "ucg_coll/capi/formation_places.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {
namespace {

using transport::Network;
using transport::ShmTransport;

class Former {
  public:
    Former(Context& context, const ucg_group_params_t& params)
        : context_(context), params_(params), rank_(static_cast<Rank>(params.rank)),
          speaker_(rank_) {}

    /// Ranks for which an exchange that failed here did not fail may have made the group, and write
    /// where this one said.
    ~Former() {
        if (exchanging_ && offered_ != nullptr) {
            offered_->establish();
        }
    }
    Former(const Former&) = delete;
    Former& operator=(const Former&) = delete;

    Result<Formation> run() {
        Result<Formation> formed = form();
        if (!formed.ok()) {
            // A program that makes many groups need not hear for each what they all lack.
            const bool first = context_.first(Context::Once::no_group);
            log(first && speaker_ == rank_ ? LogLevel::error : LogLevel::info, "{}",
                formed.status().message());
        }
        return formed;
    }

  private:
    Result<Formation> form() {
        if (Status status = meet(); !status.ok()) {
            return status;
        }
        Result<bool> shared = share_memory();
        if (!shared.ok()) {
            return shared.status();
        }
        if (several_hosts() || !*shared) {
            if (Status status = connect_ucx(); !status.ok()) {
                return status;
            }
        }
        route();
        remember_options();
        context_.group_made(formation_.group_id);
        return std::move(formation_);
    }

    /// One allgather of a trivially copyable value.
    template <typename T>
    Result<std::vector<T>> exchange(const T& mine) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::vector<T> all(params_.size);
        exchanging_ = true;
        if (params_.oob_allgather(params_.oob_arg, &mine, all.data(), sizeof(T)) != 0) {
            return failure(Code::io_error,
                           "rank {}: the caller's allgather failed while a group of {} ranks was "
                           "made",
                           rank_, params_.size);
        }
        exchanging_ = false;
        return all;
    }

    Status meet() {
        Hello mine;
        mine.next_group_id = context_.next_group_id();
        const Context::ProcessFacts& facts = context_.process_facts();
        if (facts.host.ok()) {
            mine.host = shm::identity(*facts.host);
            mine.machine = shm::machine_identity(*facts.host);
        }
        mine.plan_hash = context_.config().plan_hash();
        mine.profile_hash = context_.profile().hash;
        mine.profile_named = context_.profile().named ? 1 : 0;
        mine.profile_found = context_.profile().path.empty() ? 0 : 1;
        mine.profile_bad = context_.profile().complaint.empty() ? 0 : 1;
        mine.cpu_quota = facts.cpu_count;
        for (const std::uint32_t cpu : facts.cpus) {
            mine.cpus.add(cpu);
        }
        mine.shm_enabled = context_.shm_usable() ? 1 : 0;
        mine.staging_bytes = context_.staging_for_group();
        mine.ring_bytes = context_.ring_bytes_for_group();
        mine.cma_bytes_min = context_.config().cma_bytes_min();
        if (mine.cma_bytes_min == 0 && mine.shm_enabled != 0 && params_.size > 1) {
            mine.seen_cma_bytes_min = context_.single_copy_bytes_min();
        }
        mine.heap = context_.shm_usable() ? context_.heap_wish() : shm::HeapWish();
        mine.phases = phases_end(context_.phases());
        mine.place = context_.place();
        guess(mine);
        Result<std::vector<Hello>> all = exchange(mine);
        if (!all.ok()) {
            return all.status();
        }
        if (Status status = compare(*all); !status.ok()) {
            return status;
        }
        if (is_first(*all, Context::Once::bad_profile,
                     [](const Hello& hello) { return hello.profile_bad != 0; })) {
            log(LogLevel::warn, "{}: {}", context_.name(), context_.profile().complaint);
        }
        if (is_first(*all, Context::Once::unknown_host,
                     [](const Hello& hello) { return hello.host == 0; })) {
            log(LogLevel::warn, "{}: {}: rank {} of {} counts as a host of its own",
                context_.name(), facts.host.status().message(), rank_, params_.size);
        }
        if (Status status = agree_on_profile(*all); !status.ok()) {
            return status;
        }
        place_ranks(*all);
        place_machines(*all);
        for (const Hello& hello : *all) {
            formation_.group_id = std::max(formation_.group_id, hello.next_group_id);
            all_enable_shm_ = all_enable_shm_ && hello.shm_enabled != 0;
            staging_bytes_ = std::min(staging_bytes_, hello.staging_bytes);
        }
        agree_on_copies(*all);
        for (const Rank local : local_ranks()) {
            heaps_.push_back((*all)[static_cast<std::size_t>(local)].heap);
        }
        look_at_guesses(*all);
        return {};
    }

    /// Programs make communicators of the same ranks again and again. So this rank offers at once
    /// what it would if this group were as the latest of its size, which saves an exchange where
    /// that holds for all.
    void guess(Hello& mine) {
        const std::optional<transport::ShmOptions> options = context_.latest_options(params_.size);
        if (mine.shm_enabled == 0 || mine.heap.capacity_bytes > 0 || !options) {
            return; // Who wishes for a heap has none.
        }
        Result<shm::Heap*> heap = context_.heap();
        if (!heap.ok()) {
            return;
        }
        std::vector<Rank> ranks(params_.size);
        std::iota(ranks.begin(), ranks.end(), Rank{0});
        Result<std::unique_ptr<ShmTransport>> made =
            ShmTransport::create(**heap, ranks, rank_, *options);
        if (!made.ok()) {
            return; // The offer that is not guessed says so.
        }
        offered_ = std::move(*made);
        mine.guess = offer_of(**heap, *offered_);
        mine.guessed_options = digest(*options);
        mine.attached_heaps = (*heap)->attached_digest();
    }

    /// Did all ranks guess, and rightly? Then the second exchange has taken place. Who knows the
    /// heaps of the same processes as all others, each its own among them, knows all of theirs.
    void look_at_guesses(const std::vector<Hello>& all) {
        const std::uint64_t options = digest(shm_options());
        const bool right =
            !several_hosts() && all_enable_shm_ &&
            std::all_of(all.begin(), all.end(), [&](const Hello& hello) {
                return hello.guess.end == ShmEnd::made && hello.guessed_options == options;
            });
        if (!right) {
            offered_.reset();
            return;
        }
        for (const Hello& hello : all) {
            guesses_.push_back(hello.guess);
            guesses_.back().attached = hello.attached_heaps == all.front().attached_heaps ? 1 : 0;
        }
    }

    /// Is this the first rank in trouble, and is it the first time? Many ranks usually share one.
    template <typename InTrouble>
    bool is_first(const std::vector<Hello>& all, Context::Once message, InTrouble in_trouble) {
        const auto first = std::find_if(all.begin(), all.end(), in_trouble);
        // Asked on all ranks: any of them may be the first of a group that is made of these.
        return first != all.end() && context_.first(message) && first - all.begin() == rank_;
    }

    /// Says what differs and between whom: rank 0 compared with the others, so every rank comes to
    /// the same verdict, and rank 0 tells.
    Status compare(const std::vector<Hello>& all) {
        const auto absent = std::find_if(all.begin(), all.end(),
                                         [](const Hello& hello) { return hello.declines != 0; });
        if (absent != all.end()) {
            speaker_ = static_cast<Rank>(absent - all.begin()); // It has told why.
            return declined(static_cast<std::size_t>(speaker_));
        }
        speaker_ = 0;
        for (std::size_t other = 1; other < all.size(); ++other) {
            if (all[other].api_version != all[0].api_version) {
                return failure(Code::disagreement,
                               "rank 0 runs version {:#x} of the library, rank {} version {:#x}: "
                               "use one version on all hosts",
                               all[0].api_version, other, all[other].api_version);
            }
            if (all[other].plan_hash != all[0].plan_hash) {
                return failure(Code::disagreement,
                               "rank 0 and rank {} have different settings that choose algorithms "
                               "(UCG_<COLLECTIVE>): export them to all ranks",
                               other);
            }
        }
        speaker_ = rank_;
        return {};
    }

    /// Costs that differ would choose different algorithms. Where the user named a file, that is
    /// an error; files that were merely found, on hosts that were measured one by one, give way.
    Status agree_on_profile(const std::vector<Hello>& all) {
        formation_.profile = context_.profile().profile;
        const auto other = std::find_if(all.begin(), all.end(), [&](const Hello& hello) {
            return hello.profile_hash != all[0].profile_hash;
        });
        if (other == all.end()) {
            return {};
        }
        const auto rank = other - all.begin();
        if (std::none_of(all.begin(), all.end(),
                         [](const Hello& hello) { return hello.profile_found != 0; })) {
            formation_.profile = cost::default_profile(); // Processors of several kinds.
            return {};
        }
        if (std::any_of(all.begin(), all.end(),
                        [](const Hello& hello) { return hello.profile_named != 0; })) {
            speaker_ = 0;
            return failure(Code::disagreement,
                           "rank 0 and rank {} have different cost profiles: give all ranks the "
                           "same file by UCG_PROFILE",
                           rank);
        }
        formation_.profile = cost::default_profile();
        // Asked on all ranks: any of them may be rank 0 of another group.
        if (const bool untold = context_.first(Context::Once::profile_quarrel);
            untold && rank_ == 0) {
            log(LogLevel::warn,
                "{}: rank 0 and rank {} of {} found different cost profiles, the built-in costs "
                "are used. UCG_PROFILE names one file for all, or {} to silence this",
                context_.name(), rank, params_.size, kBuiltinProfile);
        }
        return {};
    }

    /// By what lengths the group copies, which a setting decides before the profile.
    void agree_on_copies(const std::vector<Hello>& all) {
        cost::MemoryModel& memory = formation_.profile.memory;
        std::uint64_t cma_bytes_min = 0;
        std::uint64_t seen_bytes_min = 0;
        ring_bytes_ = memory.ring_bytes(formation_.ranks_per_cpu);
        for (const Hello& hello : all) {
            cma_bytes_min = std::max(cma_bytes_min, hello.cma_bytes_min);
            seen_bytes_min = std::max(seen_bytes_min, hello.seen_cma_bytes_min);
            ring_bytes_ = std::min(ring_bytes_, hello.ring_bytes);
        }
        memory.cma.permitted = memory.cma.permitted && cma_bytes_min != ~std::uint64_t{0};
        if (seen_bytes_min > 0) {
            memory.cma.bytes_min = seen_bytes_min;
        }
        if (cma_bytes_min > 0) {
            memory.cma.bytes_min = cma_bytes_min;
            memory.copies.crowded_cma_bytes_min = cma_bytes_min;
        }
    }

    void place_ranks(const std::vector<Hello>& all) {
        Places places = places_of(all, rank_);
        formation_.placement = std::move(places.placement);
        formation_.ranks_per_cpu = places.ranks_per_cpu;
        formation_.load = std::max(context_.host_load(), places.load);
        one_kernel_ = places.one_kernel;
    }

    /// Finds the hosts in the cluster, or one rank says why all do without.
    void place_hosts(std::span<const TopologyEnd> ends) {
        const LoadedTopology& own = context_.topology();
        TopologyVerdict verdict = agree_on_topology(own.cluster, ends, formation_.placement);
        formation_.cluster = std::move(verdict.map);
        // Asked on all ranks: any of them may be the speaker of another group.
        if (verdict.reason != TopologyVerdict::Reason::none &&
            context_.first(Context::Once::no_topology) && verdict.speaker == rank_) {
            log(LogLevel::warn, "{}: {}", context_.name(), explain(verdict, own));
        }
    }

    /// Finds the ranks' machines in a schedule that was loaded, or one rank says why not.
    void place_machines(const std::vector<Hello>& all) {
        const std::vector<TopologyEnd> ends = ends_of(all, &Hello::phases);
        PhasesVerdict verdict = agree_on_phases(context_.phases(), ends);
        formation_.ranks_of_phases = std::move(verdict.ranks);
        // Asked on all ranks: any of them may be the speaker of another group.
        if (verdict.speaker != kNoRank && context_.first(Context::Once::no_phases) &&
            verdict.speaker == rank_) {
            log(LogLevel::warn, "{}: {}. All ranks do without this schedule", context_.name(),
                verdict.reason);
        }
    }

    std::span<const Rank> local_ranks() const {
        return formation_.placement.ranks_on(formation_.placement.place(rank_).host);
    }

    /// Is everybody's on-host traffic carried by shared memory? Decided alike on all ranks: if it
    /// fails for one, the whole group does without.
    Result<bool> share_memory() {
        if (!all_enable_shm_) {
            return formation_.placement.ranks_per_host_max() == 1;
        }
        Status status;
        Result<std::vector<ShmOffer>> offers = std::move(guesses_);
        if (offered_ == nullptr) {
            ShmOffer mine;
            offered_ = offer(mine, status);
            offers = exchange(mine);
        }
        if (!offers.ok()) {
            return offers.status();
        }
        std::vector<ShmEnd> ends;
        for (const ShmOffer& offered : *offers) {
            ends.push_back(offered.end);
        }
        if (!all_made(ends)) {
            offered_.reset();
            return step_down(ends, status);
        }
        ends = {connect_shm(offered_.get(), *offers, status)};
        // Where nobody has to map anybody all ranks come to the same end.
        if (!std::all_of(offers->begin(), offers->end(),
                         [](const ShmOffer& offered) { return offered.attached != 0; })) {
            Result<std::vector<ShmEnd>> connected = exchange(ends.front());
            if (!connected.ok()) {
                return connected.status();
            }
            ends = std::move(*connected);
        }
        if (!all_made(ends)) {
            context_.give_up_shm();
            offered_.reset();
            context_.drop_unused_heap(); // UCX may need the address space.
            return step_down(ends, status);
        }
        if (offered_ != nullptr) {
            offered_->establish();
        }
        formation_.shm = std::move(offered_);
        agree_on_staging(*offers);
        return true;
    }

    /// What ranks of one host read of one another. Nothing is said of other hosts.
    void agree_on_staging(const std::vector<ShmOffer>& offers) {
        if (several_hosts() || formation_.shm == nullptr) {
            return;
        }
        formation_.staging_bytes = formation_.shm->staging().size();
        formation_.board_bytes = formation_.shm->board()->bytes_max();
        formation_.buffers_in_heap =
            std::all_of(offers.begin(), offers.end(),
                        [](const ShmOffer& offer) { return offer.serves_malloc != 0; });
    }

    /// Maps the heaps of the ranks on this host. Who fails says so to those that wait for its heap,
    /// which then need not wait for their time-out.
    ShmEnd connect_shm(ShmTransport* mine, const std::vector<ShmOffer>& offers, Status& status) {
        if (mine == nullptr) {
            return ShmEnd::made;
        }
        std::vector<transport::ShmAddress> addresses;
        for (const Rank local : local_ranks()) {
            addresses.push_back(offers[static_cast<std::size_t>(local)].address);
        }
        status = mine->connect(addresses);
        if (status.ok()) {
            return ShmEnd::made;
        }
        context_.give_up_shm();
        return status.code() == Code::unreachable ? ShmEnd::missing_peer : ShmEnd::failed;
    }

    /// What all ranks of the group agree in, but for the time-out.
    transport::ShmOptions shm_options() const {
        transport::ShmOptions options;
        options.outstanding_max = engine::kOutstandingMax;
        const cost::MemoryModel& memory = formation_.profile.memory;
        options.single_copy_bytes_min = memory.cma.permitted
                                            ? memory.single_copy_bytes_min(formation_.ranks_per_cpu)
                                            : ~std::uint64_t{0};
        static_assert(cost::kJointCopyBytesMin == shm::kPieceMin, "what plans are priced by");
        options.mapped_copy_bytes_min = memory.copies.mapped_bytes_min;
        options.ring_bytes = ring_bytes_;
        options.own_processors = formation_.ranks_per_cpu <= 1;
        options.staging_bytes = formation_.placement.host_count() == 1 ? staging_bytes_ : 0;
        options.attach_timeout = std::chrono::seconds(context_.config().timeout_seconds());
        return options;
    }

    /// This rank's end of the shared memory; null, with nothing to offer, if it is alone on its
    /// host.
    std::unique_ptr<ShmTransport> offer(ShmOffer& mine, Status& status) {
        if (local_ranks().size() == 1) {
            mine.end = ShmEnd::made;
            mine.attached = 1;
            return nullptr;
        }
        const auto self = static_cast<std::size_t>(formation_.placement.index_on_host(rank_));
        Result<shm::Heap*> heap = context_.heap(heaps_, self);
        if (!heap.ok()) {
            status = heap.status();
            mine.end = status.code() == Code::unreachable ? ShmEnd::missing_peer : ShmEnd::failed;
            return nullptr;
        }
        Result<std::unique_ptr<ShmTransport>> made = ShmTransport::create(
            **heap, local_ranks(), formation_.placement.index_on_host(rank_), shm_options());
        if (!made.ok()) {
            status = made.status();
            return nullptr;
        }
        mine = offer_of(**heap, **made);
        mine.attached = std::all_of(heaps_.begin(), heaps_.end(),
                                    [&](const shm::HeapWish& peer) {
                                        return (*heap)->base_of(peer.token) != nullptr;
                                    })
                            ? 1
                            : 0;
        return std::move(*made);
    }

    /// Without shared memory, UCX carries everything. One line for the user, from the first rank
    /// that knows a cause.
    Result<bool> step_down(const std::vector<ShmEnd>& ends, const Status& status) {
        // In the order of ShmEnd: who failed by itself comes before who only missed a peer.
        const auto first = std::min_element(ends.begin(), ends.end());
        // Asked on all ranks: any of them may be the first of a group that is made of these.
        const bool untold = context_.first(Context::Once::step_down);
        if (first - ends.begin() == rank_ && untold) {
            log(LogLevel::warn, "{}: rank {} of {} has no shared memory: {}. {}", context_.name(),
                rank_, params_.size, status.message(),
                context_.config().ucx_enabled()
                    ? "All ranks use UCX instead, which is slower; UCG_TLS=ucx silences this"
                    : "UCG_TLS allows nothing else");
        }
        return false;
    }

    bool several_hosts() const { return formation_.placement.host_count() > 1; }

    Status connect_ucx() {
        Status status;
        Network* network = nullptr;
        if (!context_.config().ucx_enabled()) {
            status = failure(Code::unreachable,
                             "rank {}: shared memory does not reach all ranks of the group and "
                             "UCG_TLS does not list ucx",
                             rank_);
        } else if (Result<Network*> started = context_.ucx(several_hosts()); started.ok()) {
            network = *started;
        } else {
            status = started.status();
        }
        Result<std::vector<std::string>> addresses = exchange_addresses(network);
        if (!addresses.ok()) {
            return status.ok() ? addresses.status() : status;
        }
        Result<std::unique_ptr<transport::Transport>> made = network->make_transport(
            formation_.group_id, rank_, peers_for_ucx(std::move(*addresses)));
        status = made.status();
        const std::uint32_t mine = made.ok() ? 1 : 0;
        Result<std::vector<std::uint32_t>> all = exchange(mine);
        if (!all.ok()) {
            return status.ok() ? all.status() : status;
        }
        const auto failed = std::find(all->begin(), all->end(), 0U);
        if (failed != all->end()) {
            speaker_ = static_cast<Rank>(failed - all->begin());
            return !status.ok()
                       ? status
                       : failure(Code::unreachable, "rank {} could not start its UCX transport",
                                 failed - all->begin());
        }
        formation_.ucx = std::move(*made);
        return {};
    }

    /// Every rank's UCX address, or the same failure on all ranks if one has none.
    Result<std::vector<std::string>> exchange_addresses(Network* network) {
        const std::string mine(network == nullptr ? std::string_view() : network->address());
        Result<std::vector<NetworkEnd>> ends = exchange(
            NetworkEnd{mine.size(), network != nullptr && network->only_tcp() ? 1U : 0U,
                       several_hosts() ? topology_end(context_.topology()) : TopologyEnd()});
        if (!ends.ok()) {
            return ends.status();
        }
        const auto missing = std::find_if(ends->begin(), ends->end(), [](const NetworkEnd& end) {
            return end.address_bytes == 0;
        });
        if (missing != ends->end()) {
            speaker_ = static_cast<Rank>(missing - ends->begin());
            return failure(Code::unreachable, "rank {} of the group has no UCX transport",
                           missing - ends->begin());
        }
        if (std::any_of(ends->begin(), ends->end(),
                        [](const NetworkEnd& end) { return end.only_tcp != 0; })) {
            formation_.network =
                one_kernel_ ? cost::NetworkKind::one_kernel : cost::NetworkKind::tcp;
        }
        if (several_hosts()) {
            place_hosts(ends_of(*ends, &NetworkEnd::topology));
        }
        return exchange_texts(mine, *ends);
    }

    /// Of different lengths, which all ranks know.
    Result<std::vector<std::string>> exchange_texts(std::string mine,
                                                    const std::vector<NetworkEnd>& ends) {
        std::uint64_t width = 0;
        for (const NetworkEnd& end : ends) {
            width = std::max(width, end.address_bytes);
        }
        mine.resize(width);
        std::string all(width * params_.size, '\0');
        if (params_.oob_allgather(params_.oob_arg, mine.data(), all.data(), width) != 0) {
            return failure(Code::io_error, "rank {}: the caller's allgather of addresses failed",
                           rank_);
        }
        std::vector<std::string> addresses;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            addresses.push_back(all.substr(i * width, ends[i].address_bytes));
        }
        return addresses;
    }

    /// Ranks that shared memory serves, and this one, are not UCX's business.
    std::vector<std::string> peers_for_ucx(std::vector<std::string> addresses) const {
        addresses[static_cast<std::size_t>(rank_)].clear();
        if (formation_.shm != nullptr) {
            for (const Rank local : local_ranks()) {
                addresses[static_cast<std::size_t>(local)].clear();
            }
        }
        return addresses;
    }

    void remember_options() {
        if (formation_.shm != nullptr && !several_hosts()) {
            context_.set_latest_options(params_.size, shm_options());
        } else {
            context_.forget_latest_options(params_.size);
        }
    }

    void route() {
        formation_.routes.assign(params_.size, formation_.ucx.get());
        if (formation_.shm != nullptr) {
            for (const Rank local : local_ranks()) {
                formation_.routes[static_cast<std::size_t>(local)] = formation_.shm.get();
            }
        }
        formation_.routes[static_cast<std::size_t>(rank_)] = nullptr;
    }

    Context& context_;
    const ucg_group_params_t& params_;
    Rank rank_;
    Formation formation_;
    bool all_enable_shm_ = true;
    bool one_kernel_ = false;                         ///< All ranks are on hosts of one.
    std::uint64_t staging_bytes_ = ~std::uint64_t{0}; ///< The least that a rank would have.
    std::uint64_t ring_bytes_ = 0;                    ///< That the buffers of a ring have.
    std::vector<shm::HeapWish> heaps_;      ///< Of the ranks on this host, when they said hello.
    std::unique_ptr<ShmTransport> offered_; ///< What the others hear of, until the group has it.
    std::vector<ShmOffer> guesses_;         ///< Of all ranks, if they hold.
    bool exchanging_ = false;               ///< Or an exchange has failed.
    Rank speaker_; ///< Who tells the user why there is no group, where all ranks know who failed.
};

} // namespace

Result<Formation> form_group(Context& context, const ucg_group_params_t& params) {
    return Former(context, params).run();
}

} // namespace ucg::capi
