#include "tools/ucg_info/costs_report.hpp"

#include "topo/topo.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::tools {
namespace {

std::string length(std::uint64_t bytes) {
    return bytes == ~std::uint64_t{0} ? "never" : "from " + topo::format_bytes(bytes) + " on";
}

} // namespace

CostsReport::CostsReport(const capi::Config& config)
    : processor_(cost::processor_text(topo::this_processor())),
      built_in_(fmt::format("built in: {}", capi::builtin_costs_here().name)) {
    const Result<capi::LoadedProfile> profile = capi::load_profile(config.profile());
    if (!profile.ok()) {
        reason_ = profile.status().message();
        return;
    }
    profile_ = *profile;
    copies_ = config.cma_bytes_min() == 0 ? capi::single_copies(profile_)
                                          : capi::SingleCopies{config.cma_bytes_min(), "UCG_CMA"};
    if (config.cma_bytes_min() != 0) {
        profile_.profile.memory.copies.crowded_cma_bytes_min = config.cma_bytes_min();
    }
}

bool CostsReport::tuned() const {
    return profile_.profile.memory.cache(cost::Cache::l2).measured;
}

const char* CostsReport::origin(bool measured) const {
    return measured ? "measured" : built_in_.c_str();
}

std::string CostsReport::text() const {
    const std::string head =
        fmt::format("Costs\n  processor      {}\n", processor_.empty() ? "unknown" : processor_);
    if (!reason_.empty()) {
        return head + fmt::format("  not usable: {}\n", reason_);
    }
    const cost::MemoryModel& memory = profile_.profile.memory;
    std::string text = fmt::format("{}  profile        {}\n"
                                   "    caches, reductions    {}\n"
                                   "    waking ranks          {}\n"
                                   "    kernel's copies       {}\n"
                                   "  single copies  {} ({})\n"
                                   "                 {} where ranks share processors\n",
                                   head, profile_.path.empty() ? "no file" : profile_.path,
                                   origin(tuned()), origin(memory.wake.measured),
                                   origin(memory.cma.measured), length(copies_.bytes_min),
                                   copies_.origin, length(memory.copies.crowded_cma_bytes_min));
    if (!profile_.complaint.empty()) {
        text += fmt::format("  note           {}\n", profile_.complaint);
    } else if (const std::string advice = capi::tune_advice(profile_); !advice.empty()) {
        text += fmt::format("  advice         {}\n", advice);
    }
    return text;
}

nlohmann::ordered_json CostsReport::json() const {
    const cost::MemoryModel& memory = profile_.profile.memory;
    return {{"processor", processor_},
            {"reason", reason_},
            {"profile", profile_.path},
            {"built_in", built_in_},
            {"caches_measured", tuned()},
            {"wake_measured", memory.wake.measured},
            {"cma_measured", memory.cma.measured},
            {"single_copy_bytes_min", copies_.bytes_min},
            {"single_copy_origin", copies_.origin},
            {"crowded_single_copy_bytes_min", memory.copies.crowded_cma_bytes_min},
            {"complaint", profile_.complaint},
            {"advice", reason_.empty() ? capi::tune_advice(profile_) : ""}};
}

} // namespace ucg::tools
