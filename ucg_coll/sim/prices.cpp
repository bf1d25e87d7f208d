#include "ucg_coll/sim/prices.hpp"

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace ucg::sim {

namespace {

using Named = std::pair<std::string_view, double>;

Status check_prices(std::initializer_list<Named> prices) {
    for (const auto& [name, value] : prices) {
        if (!std::isfinite(value) || value < 0) {
            return failure(Code::invalid_argument,
                           "{}: expected a finite number that is not negative, found {}", name,
                           value);
        }
    }
    return {};
}

Status check_model(const cost::Postal& model) {
    return check_prices({{"alpha", model.alpha_ns},
                         {"beta", model.beta_ns_per_byte},
                         {"gamma", model.gamma_ns_per_byte},
                         {"compute", model.reduce_fixed_ns}});
}

Status check_model(const cost::PipeliningPostal& model) {
    return check_prices({{"alpha_p", model.alpha_p_ns},
                         {"alpha_r", model.alpha_r_ns},
                         {"beta", model.beta_ns_per_byte},
                         {"gamma", model.gamma_ns_per_byte},
                         {"compute", model.reduce_fixed_ns}});
}

Status check_model(const cost::LogP& model) {
    return check_prices(
        {{"latency", model.latency_ns}, {"overhead", model.overhead_ns}, {"gap", model.gap_ns}});
}

Status check_model(const cost::LogfP& model) {
    if (model.free_messages == 0) {
        return {Code::invalid_argument, "free messages: expected at least 1, found 0"};
    }
    return check_model(cost::LogP{model.latency_ns, model.overhead_ns, model.gap_ns});
}

Status check_model(const cost::LogGp& model) {
    return check_prices({{"latency", model.latency_ns},
                         {"overhead", model.overhead_ns},
                         {"gap", model.gap_ns},
                         {"gap per byte", model.gap_per_byte_ns}});
}

Status check_model(const PerLevel& levels) {
    for (std::size_t level = 0; level < topo::kDistanceCount; ++level) {
        const auto distance = static_cast<topo::Distance>(level);
        if (Status status = check_model(levels.at(distance).model()); !status.ok()) {
            return status;
        }
    }
    return {};
}

cost::MessageTerms terms(const PerLevel& levels, topo::Distance distance, std::uint64_t bytes) {
    const price::MessagePrice price = levels.at(distance).price(bytes, price::Source::settled);
    cost::MessageTerms terms = price.terms;
    terms.take_ns += price.copy_ns;
    return terms;
}

price::MessagePrice price(const PerLevel& levels, topo::Distance distance, std::uint64_t bytes,
                          price::Source source, std::uint64_t working_set_bytes) {
    return levels.at(distance).with_working_set(working_set_bytes).price(bytes, source);
}

template <typename Model>
price::MessagePrice price(const Model& model, topo::Distance /*distance*/, std::uint64_t bytes,
                          price::Source /*source*/, std::uint64_t /*working_set_bytes*/) {
    return {.terms = cost::message_terms(model, bytes)};
}

template <typename Model>
cost::MessageTerms terms(const Model& model, topo::Distance /*distance*/, std::uint64_t bytes) {
    return cost::message_terms(model, bytes);
}

} // namespace

cost::MessageTerms message_terms(const NetworkModel& network, topo::Distance distance,
                                 std::uint64_t bytes) {
    return std::visit([&](const auto& model) { return terms(model, distance, bytes); }, network);
}

price::MessagePrice message_price(const NetworkModel& network, topo::Distance distance,
                                  std::uint64_t bytes, price::Source source,
                                  std::uint64_t working_set_bytes) {
    return std::visit(
        [&](const auto& model) { return price(model, distance, bytes, source, working_set_bytes); },
        network);
}

double combine_message_ns(const NetworkModel& network, const Compute& compute,
                          topo::Distance distance, std::uint64_t bytes, std::uint64_t touched_bytes,
                          unsigned passing) {
    const auto* const levels = std::get_if<PerLevel>(&network);
    if (levels == nullptr || compute.profile == nullptr ||
        !levels->at(distance).combined_on_arrival(bytes)) {
        return reduce_ns(compute, 2, bytes, touched_bytes, passing);
    }
    return levels->at(distance).combining_ns(bytes,
                                             compute.profile->memory.rates_for(touched_bytes));
}

PerLevel::PerLevel(const cost::Profile& profile, const price::Surroundings& around) {
    for (std::size_t level = 0; level < topo::kDistanceCount; ++level) {
        levels_.emplace_back(profile, static_cast<topo::Distance>(level), around);
    }
}

double reduce_ns(const Compute& compute, unsigned operands, std::uint64_t bytes,
                 std::uint64_t touched_bytes, unsigned passing) {
    if (compute.profile != nullptr) {
        return price::reduce_segment_ns(*compute.profile, operands, passing, bytes,
                                        compute.profile->memory.rates_for(touched_bytes));
    }
    const double combinations = operands > 0 ? operands - 1 : 0;
    return compute.reduction_ns + combinations * compute.combine_ns +
           static_cast<double>(bytes) * (operands * compute.operand_ns_per_byte +
                                         combinations * compute.combine_ns_per_byte);
}

double copy_ns(const Compute& compute, std::uint64_t bytes, std::uint64_t touched_bytes) {
    if (compute.profile != nullptr) {
        return price::copy_ns(*compute.profile, bytes,
                              compute.profile->memory.rates_for(touched_bytes));
    }
    return static_cast<double>(bytes) * compute.copy_ns_per_byte;
}

double kernel_copy_ns(const Compute& compute, std::uint64_t bytes) {
    return compute.profile != nullptr ? cost::cma_ns(compute.profile->memory.cma, bytes)
                                      : copy_ns(compute, bytes);
}

double publish_ns(const Memory& memory, std::uint64_t bytes, std::uint64_t working_set_bytes) {
    return memory.buffers_mapped ? 0 : price::publish_ns(memory.model, bytes, working_set_bytes);
}

Reads reads_of(const Memory& memory, topo::Distance distance, std::uint64_t bytes) {
    const cost::MemoryLevel& staging_buffers = memory.model.level(distance);
    const cost::MemoryLevel level =
        memory.buffers_mapped ? price::own_buffers(staging_buffers, memory.model, memory.one_pair)
                              : staging_buffers;
    const auto length = static_cast<double>(bytes);
    return {level.latency_ns, length * level.per_byte_ns, length * level.contended_per_byte_ns};
}

double read_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
               std::uint64_t bytes) {
    return cost::contended_read_ns(memory.model.level(distance), readers, bytes);
}

FlagSlotTerms flag_slot_terms(const NetworkModel& network, topo::Distance distance) {
    const cost::MessageTerms empty = message_terms(network, distance, 0);
    return {empty.issue_ns, empty.inject_ns + empty.flight_ns};
}

double flag_slot_copy_ns(const Memory& memory, std::uint64_t bytes) {
    return cost::copy_ns(memory.model, bytes);
}

double combine_flag_slots_ns(const Compute& compute, const Memory& memory, topo::Distance distance,
                             unsigned operands, std::uint64_t bytes) {
    return compute.profile == nullptr
               ? reduce_ns(compute, operands, bytes, 0)
               : price::combine_flag_slots_ns(*compute.profile, memory.model.level(distance),
                                              operands, bytes);
}

double flag_slot_lines_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
                          std::uint64_t bytes) {
    return cost::flag_slot_lines_ns(memory.model.level(distance), readers,
                                    cost::flag_slot_line_bytes(bytes));
}

Compute compute_of(const cost::Postal& model) {
    return {.combine_ns = model.reduce_fixed_ns, .combine_ns_per_byte = model.gamma_ns_per_byte};
}

Compute compute_of(const cost::PipeliningPostal& model) {
    return {.combine_ns = model.reduce_fixed_ns, .combine_ns_per_byte = model.gamma_ns_per_byte};
}

Compute compute_of(const cost::Profile& profile) {
    return {.profile = &profile};
}

Status check(const NetworkModel& network) {
    return std::visit([](const auto& model) { return check_model(model); }, network);
}

Status check(const Compute& compute) {
    return check_prices({{"copy", compute.copy_ns_per_byte},
                         {"reduction", compute.reduction_ns},
                         {"compute", compute.combine_ns},
                         {"operand", compute.operand_ns_per_byte},
                         {"gamma", compute.combine_ns_per_byte}});
}

Status check(const Memory& memory) {
    for (const cost::MemoryLevel& level : memory.model.levels) {
        Status status = check_prices({{"memory latency", level.latency_ns},
                                      {"memory per byte", level.per_byte_ns},
                                      {"memory contended per byte", level.contended_per_byte_ns}});
        if (!status.ok()) {
            return status;
        }
    }
    for (const cost::CacheRates& cache : memory.model.caches) {
        Status status = check_prices({{"memory copy", cache.copy_per_byte_ns},
                                      {"memory overwrite", cache.overwrite_per_byte_ns}});
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

Status check(const HostLink& link) {
    return check_prices(
        {{"link per message", link.per_message_ns}, {"link per byte", link.per_byte_ns}});
}

} // namespace ucg::sim
