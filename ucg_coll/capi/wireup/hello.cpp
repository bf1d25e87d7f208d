#include "ucg_coll/capi/wireup/hello.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

Hello hello_of(Context& context, std::uint32_t rank, std::uint32_t rank_count) {
    Hello mine;
    mine.rank = rank;
    mine.rank_count = rank_count;
    ProcessFacts& facts = context.facts();
    if (facts.host().ok()) {
        mine.host = shm::identity(*facts.host());
        mine.machine = shm::machine_identity(*facts.host());
    }
    mine.settings = context.common_digests();
    mine.profile_hash = context.profile().hash;
    mine.named_machine_hash = facts.machine().hash;
    mine.named_machine_bad = facts.machine().complaint.empty() ? 0 : 1;
    mine.profile_named = context.profile().named ? 1 : 0;
    mine.profile_found = context.profile().path.empty() ? 0 : 1;
    mine.profile_bad = context.profile().complaint.empty() ? 0 : 1;
    mine.cpu_quota = facts.grant().cpus;
    mine.cpu_quota_group = facts.grant().group;
    for (const std::uint32_t cpu : facts.cpus()) {
        mine.cpus.add(cpu);
    }
    mine.shm_enabled = context.memory().usable() ? 1 : 0;
    mine.staging_bytes = context.staging_for_group();
    mine.ring_bytes = context.ring_bytes_for_group();
    mine.cma_bytes_min = context.config().cma_bytes_min();
    if (mine.cma_bytes_min == 0 && mine.shm_enabled != 0 && rank_count > 1) {
        mine.seen_cma_bytes_min = facts.single_copy_bytes_min();
    }
    mine.phases = phases_end(context.phases());
    mine.place = facts.place();
    if (const transport::ProcessNetwork* network = context.network().at_hand()) {
        mine.network_process = network->process();
    }
    return mine;
}

Status declined(std::size_t rank) {
    return failure(Code::unreachable, "rank {} cannot be in a group", rank);
}

Task<Status> decline_group(const GroupParams& params, WireupExchanges& exchanges) {
    const GatheredValues<Hello> memory = values_of<Hello>(params.size);
    memory->mine.declines = 1;
    memory->mine.rank = params.rank;
    memory->mine.rank_count = params.size;
    const WireupExchange hello = {&memory->mine, memory->all.data(), sizeof(Hello),
                                  &memory->under_way};
    const bool told = co_await exchanges.make(hello);
    co_return told ? declined(params.rank)
                   : Status(Code::io_error, "the caller's allgather failed");
}

namespace {

std::string build_text(const Hello& hello) {
    return fmt::format("version {}.{}.{} (protocol {})", hello.version >> 24,
                       hello.version >> 16 & 0xff, hello.version & 0xffff, hello.protocol);
}

bool same_build(const Hello& left, const Hello& right) {
    return left.version == right.version && left.protocol == right.protocol;
}

/// Has the caller's allgather put the part of each rank in its place? That function is the one
/// which each integrator writes, and nothing later would show what is wrong with it. What another
/// build says of its rank lies elsewhere.
Status check_parts(const std::vector<Hello>& all) {
    const Hello ours;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const Hello& hello = all[rank];
        if (hello.version == 0 || (same_build(hello, ours) && hello.rank_count == 0)) {
            return failure(Code::invalid_argument,
                           "the caller's allgather has brought nothing of rank {}", rank);
        }
        if (same_build(hello, ours) && (hello.rank != rank || hello.rank_count != all.size())) {
            return failure(Code::invalid_argument,
                           "the caller's allgather has brought the part of rank {} of {} in place "
                           "of that of rank {} of {}: parts must lie in rank order, and groups be "
                           "made in one order on all ranks",
                           hello.rank, hello.rank_count, rank, all.size());
        }
    }
    return {};
}

/// Nothing else that another build says is to be believed.
Status compare_builds(const std::vector<Hello>& all, Peers& peers) {
    const auto other = std::find_if(all.begin(), all.end(),
                                    [&](const Hello& hello) { return !same_build(hello, all[0]); });
    if (other == all.end()) {
        return {};
    }
    peers.set_speaker(0);
    return failure(Code::disagreement,
                   "rank 0 runs {} of the library, rank {} {}: use one version on all hosts",
                   build_text(all[0]), other - all.begin(), build_text(*other));
}

/// Names the settings in which that rank differs from rank 0. Only rank 0, which tells the user,
/// knows its values.
Status different_settings(const std::vector<Hello>& all, std::size_t other, const Config& config,
                          const Peers& peers) {
    std::string list;
    for (std::size_t i = 0; i < Config::kCommonCount; ++i) {
        if (all[other].settings[i] == all[0].settings[i]) {
            continue;
        }
        list += fmt::format("{}{}", list.empty() ? "" : ", ", Config::common_name(i));
        if (peers.speaks()) {
            list += fmt::format(" ('{}' at rank 0)", config.common_value(i));
        }
    }
    return failure(Code::disagreement,
                   "rank 0 and rank {} have different settings of {}: export one to all ranks",
                   other, list);
}

/// Do all ranks take themselves to be on the same machine? Places on one machine mean nothing on
/// another.
Status compare_machines(const std::vector<Hello>& all, const NamedMachine& machine, Peers& peers) {
    const auto rank_of = [&](auto hello) { return static_cast<std::size_t>(hello - all.begin()); };
    const auto bad = std::find_if(all.begin(), all.end(),
                                  [](const Hello& hello) { return hello.named_machine_bad != 0; });
    if (bad != all.end()) {
        peers.set_speaker(static_cast<Rank>(rank_of(bad)));
        return peers.speaks() ? Status(Code::invalid_argument, machine.complaint)
                              : failure(Code::invalid_argument,
                                        "rank {} cannot use the machine that its UCG_MACHINE names",
                                        rank_of(bad));
    }
    const auto other = std::find_if(all.begin(), all.end(), [&](const Hello& hello) {
        return hello.named_machine_hash != all[0].named_machine_hash;
    });
    if (other != all.end()) {
        peers.set_speaker(0);
        return failure(Code::disagreement,
                       "rank 0 and rank {} are on different machines by UCG_MACHINE, or one of "
                       "them has none: export one to all ranks",
                       rank_of(other));
    }
    return {};
}

} // namespace

Status compare(const std::vector<Hello>& all, const Config& config, const NamedMachine& machine,
               Peers& peers) {
    if (Status status = check_parts(all); !status.ok()) {
        return status;
    }
    if (Status status = compare_builds(all, peers); !status.ok()) {
        return status;
    }
    const auto absent = std::find_if(all.begin(), all.end(),
                                     [](const Hello& hello) { return hello.declines != 0; });
    if (absent != all.end()) {
        const auto rank = static_cast<std::size_t>(absent - all.begin());
        peers.set_speaker(static_cast<Rank>(rank)); // It has told why.
        return declined(rank);
    }
    for (std::size_t other = 1; other < all.size(); ++other) {
        if (all[other].settings != all[0].settings) {
            peers.set_speaker(0);
            return different_settings(all, other, config, peers);
        }
    }
    return compare_machines(all, machine, peers);
}

} // namespace ucg::capi
