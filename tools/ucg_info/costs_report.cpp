#include "tools/ucg_info/costs_report.hpp"

#include <algorithm>

#include "topo/topo.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::tools {
namespace {

constexpr double kRanksPerCpu = 2; ///< Any number above one.

std::string length(std::uint64_t bytes) {
    return bytes == ~std::uint64_t{0} ? "never" : topo::format_bytes(bytes);
}

std::string from(std::uint64_t bytes) {
    const std::string text = length(bytes);
    return text == "never" ? text : fmt::format("from {} on", text);
}

/// Returns a line of the table of lengths; `shared` is the length where ranks share processors.
std::string row(std::string_view use, const std::string& alone, const std::string& shared,
                const std::string& origin) {
    return fmt::format("    {:<40} {:<9} {:<9} {}\n", use, alone, shared, origin);
}

} // namespace

CostsReport::CostsReport(const capi::Config& config)
    : processor_(capi::processor_file_name()), built_in_(capi::builtin_costs_here().name) {
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
               ? origin(false)
               : fmt::format("measured ({}){}", measured,
                             others.empty() ? "" : fmt::format("; {} ({})", origin(false), others));
}

std::uint64_t CostsReport::bytes_min(MessageUse use, double ranks_per_cpu) const {
    cost::MemoryModel memory = profile_.profile.memory;
    memory.cma.bytes_min = copies_.bytes_min; // As ranks of this process's host would agree.
    return memory.single_copy_bytes_min(use, ranks_per_cpu);
}

std::string CostsReport::origins(const std::string& alone, const std::string& shared) {
    return alone == shared ? alone : fmt::format("{}; shared: {}", alone, shared);
}

std::string CostsReport::lengths() const {
    const cost::MemoryModel& memory = profile_.profile.memory;
    const auto by_use = [&](MessageUse use) {
        return std::pair(length(bytes_min(use, 1)), length(bytes_min(use, kRanksPerCpu)));
    };
    const auto [one_way, one_way_shared] = by_use(MessageUse::one_way);
    const auto [combined, combined_shared] = by_use(MessageUse::combined);
    const std::string copies = origin(memory.copies.measured);
    const std::string shared = origin(memory.copies.oversubscribed_measured);
    return row("from which length on", "alone", "shared", "(where ranks share processors)") +
           row("single copies, cores share no cache",
               length(std::min(memory.far_copies.cma_bytes_min, copies_.bytes_min)), "",
               far_origin_) +
           row("single copies, messages go one way", one_way, one_way_shared,
               origins(one_way_origin_, oversubscribed_origin_)) +
           row("single copies, receivers combine them", combined, combined_shared,
               origins(one_way_origin_, oversubscribed_origin_)) +
           row("single copies, peers map the buffers", length(memory.copies.mapped_bytes_min),
               length(memory.mapped_bytes_min(kRanksPerCpu)), copies) +
           row("single copies by both ranks together", length(memory.cooperative.bytes_min), "",
               origin(memory.cooperative.measured)) +
           row("size of a ring from rank to rank", length(memory.copies.ring_bytes),
               length(memory.copies.oversubscribed_ring_bytes), origins(copies, shared)) +
           row("flag slots, vectors ahead of readers",
               fmt::format("{}", transport::flag_slot_depth(memory.flag_slots.depth)),
               fmt::format("{}", transport::kFlagSlotDepth), origin(memory.flag_slots.measured));
}

std::string CostsReport::text() const {
    const std::string head =
        fmt::format("Costs\n  processor      {}\n", processor_.empty() ? "unknown" : processor_);
    if (!status_.ok()) {
        return head + fmt::format("  not usable: {}\n", status_.message());
    }
    const cost::MemoryModel& memory = profile_.profile.memory;
    std::string text = fmt::format(
        "{}  built in       {}\n"
        "  profile        {}\n{}"
        "    caches, reductions    {}\n"
        "    waking ranks          {}\n"
        "    kernel's copies       {}\n"
        "    messages              {}\n"
        "  single copies  {} ({})\n"
        "{}",
        head, built_in_, profile_.path.empty() ? "no file" : profile_.path, looked_for(),
        origin(tuned()), origin(memory.wake.measured), origin(memory.cma.measured), messages(),
        from(copies_.bytes_min), copies_.origin, lengths());
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
        {"mapped_single_copy_bytes_min", memory.copies.mapped_bytes_min},
        {"oversubscribed_mapped_single_copy_bytes_min", memory.mapped_bytes_min(kRanksPerCpu)},
        {"cooperative_single_copy_bytes_min", memory.cooperative.bytes_min},
        {"ring_bytes", memory.copies.ring_bytes},
        {"oversubscribed_ring_bytes", memory.copies.oversubscribed_ring_bytes},
        {"flag_slot_depth", transport::flag_slot_depth(memory.flag_slots.depth)},
        {"complaint", profile_.complaint},
        {"advice", status_.ok() ? capi::tune_advice(profile_) : ""}};
}

} // namespace ucg::tools
