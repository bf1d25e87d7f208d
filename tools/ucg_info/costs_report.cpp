#include "tools/ucg_info/costs_report.hpp"

#include <algorithm>

#include "topo/topo.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::tools {
namespace {

constexpr double kRanksPerCpu = 2; ///< Any number above one.

std::string length(std::uint64_t bytes) {
    return bytes == ~std::uint64_t{0} ? "never" : "from " + topo::format_bytes(bytes) + " on";
}

} // namespace

CostsReport::CostsReport(const capi::Config& config)
    : processor_(capi::processor_file_name()),
      built_in_(fmt::format("built in: {}", capi::builtin_costs_here().name)) {
    const Result<capi::LoadedProfile> profile = capi::load_profile(config.profile());
    if (!profile.ok()) {
        status_ = profile.status();
        return;
    }
    profile_ = *profile;
    copies_ = config.cma_bytes_min() == 0 ? capi::single_copies(profile_)
                                          : capi::SingleCopies{config.cma_bytes_min(), "UCG_CMA"};
    if (config.cma_bytes_min() != 0) {
        profile_.profile.memory.set_single_copy_bytes_min(config.cma_bytes_min());
        oversubscribed_origin_ = far_origin_ = one_way_origin_ = "UCG_CMA";
    } else {
        one_way_origin_ = origin(profile_.profile.memory.copies.measured);
        far_origin_ = origin(profile_.profile.memory.far_copies.measured);
        capi::take_seen(profile_.profile.memory, copies_.bytes_min);
        oversubscribed_origin_ = origin(profile_.profile.memory.copies.oversubscribed_measured);
    }
}

bool CostsReport::tuned() const {
    return profile_.profile.memory.cache(cost::Cache::l2).measured;
}

const char* CostsReport::origin(bool measured) const {
    return measured ? "measured" : built_in_.c_str();
}

std::string CostsReport::looked_for() const {
    std::string text;
    for (const capi::LookedFor& file : profile_.looked_for) {
        text += fmt::format("    {:<21} {}: {}\n", text.empty() ? "looked for" : "", file.path,
                            file.outcome);
    }
    return text;
}

std::string CostsReport::messages() const {
    std::string measured;
    std::string others;
    for (std::size_t i = 0; i < topo::kDistanceCount; ++i) {
        std::string& list = profile_.profile.levels_measured[i] ? measured : others;
        list += list.empty() ? "" : ", ";
        list += topo::name(static_cast<topo::Distance>(i));
    }
    return measured.empty()
               ? built_in_
               : fmt::format("measured ({}){}", measured,
                             others.empty() ? "" : fmt::format("; {} ({})", built_in_, others));
}

std::uint64_t CostsReport::bytes_min(MessageUse use, double ranks_per_cpu) const {
    cost::MemoryModel memory = profile_.profile.memory;
    memory.cma.bytes_min = copies_.bytes_min; // As ranks of this process's host would agree.
    return memory.single_copy_bytes_min(use, ranks_per_cpu);
}

std::string CostsReport::copies() const {
    const cost::MemoryModel& memory = profile_.profile.memory;
    return fmt::format(
        "  single copies  {} ({})\n"
        "                 {} between cores that share no cache ({})\n"
        "                 {} in collectives whose messages go one way, {} where receivers "
        "combine them ({})\n"
        "                 {} where ranks share processors, {} where receivers combine what comes "
        "({})\n"
        "                 {} of buffers that peers map, as with libucg_heap.so ({}), {} "
        "where ranks share processors; by sender and receiver together {} ({})\n"
        "  rings          buffers of {} from each rank to each other ({}), {} where ranks share "
        "processors ({})\n"
        "  flag slots     a rank is at most {} vectors ahead of those that read them ({}), "
        "{} where ranks share processors\n",
        length(copies_.bytes_min), copies_.origin,
        length(std::min(memory.far_copies.cma_bytes_min, copies_.bytes_min)), far_origin_,
        length(bytes_min(MessageUse::one_way, 1)), length(bytes_min(MessageUse::combined, 1)),
        one_way_origin_, length(bytes_min(MessageUse::one_way, kRanksPerCpu)),
        length(bytes_min(MessageUse::combined, kRanksPerCpu)), oversubscribed_origin_,
        length(memory.copies.mapped_bytes_min), origin(memory.copies.measured),
        length(memory.mapped_bytes_min(kRanksPerCpu)), length(memory.cooperative.bytes_min),
        origin(memory.cooperative.measured), topo::format_bytes(memory.copies.ring_bytes),
        origin(memory.copies.measured), topo::format_bytes(memory.copies.oversubscribed_ring_bytes),
        origin(memory.copies.oversubscribed_measured),
        transport::flag_slot_depth(memory.flag_slots.depth), origin(memory.flag_slots.measured),
        transport::kFlagSlotDepth);
}

std::string CostsReport::text() const {
    const std::string head =
        fmt::format("Costs\n  processor      {}\n", processor_.empty() ? "unknown" : processor_);
    if (!status_.ok()) {
        return head + fmt::format("  not usable: {}\n", status_.message());
    }
    const cost::MemoryModel& memory = profile_.profile.memory;
    std::string text = fmt::format("{}  profile        {}\n{}"
                                   "    caches, reductions    {}\n"
                                   "    waking ranks          {}\n"
                                   "    kernel's copies       {}\n"
                                   "    messages              {}\n"
                                   "{}",
                                   head, profile_.path.empty() ? "no file" : profile_.path,
                                   looked_for(), origin(tuned()), origin(memory.wake.measured),
                                   origin(memory.cma.measured), messages(), copies());
    if (!profile_.complaint.empty()) {
        text += fmt::format("  note           {}\n", profile_.complaint);
    } else if (const std::string advice = capi::tune_advice(profile_); !advice.empty()) {
        text += fmt::format("  advice         {}\n", advice);
    }
    return text;
}

nlohmann::ordered_json CostsReport::json() const {
    const cost::MemoryModel& memory = profile_.profile.memory;
    nlohmann::ordered_json looked_for = nlohmann::ordered_json::array();
    for (const capi::LookedFor& file : profile_.looked_for) {
        looked_for.push_back({{"path", file.path}, {"outcome", file.outcome}});
    }
    return {
        {"processor", processor_},
        {"reason", status_.ok() ? "" : status_.message()},
        {"profile", profile_.path},
        {"profiles_looked_for", looked_for},
        {"built_in", built_in_},
        {"caches_measured", tuned()},
        {"wake_measured", memory.wake.measured},
        {"cma_measured", memory.cma.measured},
        {"copies_measured", memory.copies.measured},
        {"oversubscribed_copies_measured", memory.copies.oversubscribed_measured},
        {"cooperative_copies_measured", memory.cooperative.measured},
        {"messages", messages()},
        {"single_copy_bytes_min", copies_.bytes_min},
        {"single_copy_origin", copies_.origin},
        {"far_single_copy_bytes_min", std::min(memory.far_copies.cma_bytes_min, copies_.bytes_min)},
        {"one_way_single_copy_bytes_min", bytes_min(MessageUse::one_way, 1)},
        {"combined_single_copy_bytes_min", bytes_min(MessageUse::combined, 1)},
        {"oversubscribed_single_copy_bytes_min", bytes_min(MessageUse::one_way, kRanksPerCpu)},
        {"oversubscribed_combined_single_copy_bytes_min",
         bytes_min(MessageUse::combined, kRanksPerCpu)},
        {"flag_slot_depth", transport::flag_slot_depth(memory.flag_slots.depth)},
        {"complaint", profile_.complaint},
        {"advice", status_.ok() ? capi::tune_advice(profile_) : ""}};
}

} // namespace ucg::tools
