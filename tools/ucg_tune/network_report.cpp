#include "tools/ucg_tune/network_report.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

template <typename... Args>
void append(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

std::vector<double> one_way(const NetworkResult& result, const Multicast& multicast) {
    std::vector<double> samples = multicast.round_trip_ns;
    for (double& sample : samples) {
        // One number is subtracted from all, so that a box keeps its shape, with the variation of
        // answers.
        sample = one_way_ns(multicast, sample, result.fit.answer_minimum_ns);
    }
    return samples;
}

double optimal_messages(const cost::NetworkPostal& network) {
    return cost::optimal_b(cost::pipelining_postal(network, cost::Profile()), 0);
}

Json to_json(const cost::NetworkPostal& network) {
    Json json = {{"alpha_p_ns", network.alpha_p_ns},
                 {"alpha_r_ns", network.alpha_r_ns},
                 {"beta_ns_per_byte", network.beta_ns_per_byte}};
    const double b = optimal_messages(network);
    json["optimal_b"] = std::isfinite(b) ? Json(b) : Json(nullptr);
    return json;
}

/// Keeps figures that noise has hidden as they were: a network without a price per byte is none.
cost::NetworkPostal known(cost::NetworkPostal measured, const cost::NetworkPostal& before) {
    if (measured.alpha_r_ns == 0) {
        measured.alpha_r_ns = before.alpha_r_ns;
    }
    if (measured.beta_ns_per_byte == 0) {
        measured.beta_ns_per_byte = before.beta_ns_per_byte;
    }
    return measured;
}

double contention_of(const NetworkResult& result) {
    return contention(result.exchange, stream_gap_ns(result.stream));
}

void append_costs(std::string& text, const char* what, const cost::NetworkPostal& network) {
    append(text, "  {:<8} {:>12.3f} {:>12.3f} {:>12.4f} {:>10.2f} {:>10.1f}\n", what,
           network.alpha_p_ns / 1000, network.alpha_r_ns / 1000, network.beta_ns_per_byte,
           network.alpha_p_ns / network.alpha_r_ns, optimal_messages(network));
}

} // namespace

std::string to_text(const NetworkResult& result) {
    std::string text;
    append(text, "Hosts, the sender first: {}\n", fmt::join(result.hosts, ", "));
    append(text, "  {:<8} {:>12} {:>12} {:>12} {:>10} {:>10}\n", "of", "alpha_p us", "alpha_r us",
           "beta ns/B", "ratio", "best b");
    append_costs(text, "minimum", result.fit.costs.minimum);
    append_costs(text, "median", result.fit.costs.median);
    append(text, "Starting a message   {:.3f} us of the processor\n",
           result.fit.overhead_ns / 1000);
    append(text, "A stream             {:.4f} ns/B, G of LogGP\n", stream_gap_ns(result.stream));
    if (const double times = contention_of(result); times > 0) {
        append(text, "Where messages meet  {:.2f} times as long, pairwise among {} ranks\n", times,
               result.exchange.ranks);
    }
    text += '\n';
    append(text, "{:<12} {:>8} {:>8} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}\n", "One way, us",
           "messages", "bytes", "minimum", "1st quart.", "median", "3rd quart.", "maximum",
           "rounds");
    for (const Multicast& each : result.multicasts) {
        const Box box = box_of(one_way(result, each));
        append(text, "{:<12} {:>8} {:>8} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f} {:>7}\n",
               name(each.sending), each.messages, each.bytes, box.minimum / 1000, box.low / 1000,
               box.median / 1000, box.high / 1000, box.maximum / 1000, each.round_trip_ns.size());
    }
    for (const std::string& note : result.notes) {
        append(text, "{}Note: {}\n", &note == &result.notes.front() ? "\n" : "", note);
    }
    return text;
}

std::string to_json(const NetworkResult& result) {
    Json json;
    json["hosts"] = result.hosts;
    json["minimum"] = to_json(result.fit.costs.minimum);
    json["median"] = to_json(result.fit.costs.median);
    json["overhead_ns"] = result.fit.overhead_ns;
    json["stream"] = {{"gap_ns_per_byte", stream_gap_ns(result.stream)},
                      {"message_bytes", result.stream.message_bytes},
                      {"batch_bytes", result.stream.batch_bytes},
                      {"batch_ns", result.stream.batch_ns}};
    json["exchange"] = {{"contention", contention_of(result)},
                        {"ranks", result.exchange.ranks},
                        {"bytes", result.exchange.bytes},
                        {"batch_ns", result.exchange.batch_ns}};
    json["multicasts"] = Json::array();
    for (const Multicast& each : result.multicasts) {
        const std::vector<double> samples = one_way(result, each);
        const Box box = box_of(samples);
        json["multicasts"].push_back({{"sending", name(each.sending)},
                                      {"messages", each.messages},
                                      {"bytes", each.bytes},
                                      {"minimum_ns", box.minimum},
                                      {"first_quartile_ns", box.low},
                                      {"median_ns", box.median},
                                      {"third_quartile_ns", box.high},
                                      {"maximum_ns", box.maximum},
                                      {"one_way_ns", samples},
                                      {"issue_ns", each.issue_ns}});
    }
    json["notes"] = result.notes;
    return json.dump(2) + "\n";
}

std::string to_profile_toml(const NetworkResult& result, cost::Profile profile,
                            const std::string& command) {
    profile.network = {.minimum = known(result.fit.costs.minimum, profile.network.minimum),
                       .median = known(result.fit.costs.median, profile.network.median)};
    cost::LogGp& level = profile.levels[static_cast<std::size_t>(topo::Distance::network)];
    level = cost::loggp_of(profile.network.median, result.fit.overhead_ns);
    level.gap_per_byte_ns = std::max(level.gap_per_byte_ns, stream_gap_ns(result.stream));
    profile.levels_measured[static_cast<std::size_t>(topo::Distance::network)] = true;
    if (const double times = contention_of(result); times > 0) {
        profile.links = {.contention = times, .measured = true};
    }
    std::string text =
        fmt::format("# Written by: {}\n# Hosts: {}\n", command, fmt::join(result.hosts, ", "));
    for (const std::string& note : result.notes) {
        append(text, "# Note: {}\n", note);
    }
    return text + cost::to_toml(profile);
}

std::string to_gnuplot(const NetworkResult& result, const std::string& path) {
    std::uint64_t least = UINT64_MAX;
    std::uint32_t most = 1;
    for (const Multicast& each : result.multicasts) {
        least = std::min(least, each.bytes);
        most = std::max(most, each.messages);
    }
    std::string data;
    std::string curves;
    bool titled[2] = {false, false};
    for (const Multicast& each : result.multicasts) {
        if (each.bytes != least) {
            continue;
        }
        const bool blocking = each.sending == Sending::blocking;
        const auto block = fmt::format("${}{}", name(each.sending), each.messages);
        append(data, "{} << END\n", block);
        for (const double ns : one_way(result, each)) {
            append(data, "{:.3f}\n", ns / 1000);
        }
        data += "END\n";
        append(curves, "{} using ({}):1 with boxplot lc {} {}, ", block,
               each.messages + (blocking ? 0.2 : -0.2), blocking ? 2 : 1,
               titled[blocking] ? std::string("notitle")
                                : fmt::format("title '{}'", name(each.sending)));
        titled[blocking] = true;
    }
    const auto line = [&](const cost::NetworkPostal& network, const char* what, int dash,
                          double above_ns) {
        const double further =
            network.alpha_r_ns + static_cast<double>(least) * network.beta_ns_per_byte;
        append(curves, "{} + {} * x lc 1 dt {} title '{}: {:.1f} us + b {:.1f} us'{}",
               (network.alpha_p_ns + above_ns) / 1000, further / 1000, dash, what,
               network.alpha_p_ns / 1000, further / 1000, dash == 2 ? ", " : "");
    };
    line(result.fit.costs.minimum, "minimum", 2, 0);
    // Boxes are less the answers' best time; this line's parameters are less their median.
    line(result.fit.costs.median, "median", 3,
         result.fit.answer_median_ns - result.fit.answer_minimum_ns);
    return fmt::format("set terminal svg size 900,600 background rgb 'white'\n"
                       "set output '{}'\n"
                       "{}set style fill solid 0.3 border\nset style boxplot range 1.5\n"
                       "set boxwidth 0.3\nset xlabel 'messages of {} bytes in a multicast'\n"
                       "set ylabel 'one way, us'\nset key left top\nset grid ytics\n"
                       "set xrange [0.4:{}]\nset yrange [0:*]\nset xtics 1\nplot {}\n",
                       path, data, least, most + 0.6, curves);
}

} // namespace ucg::tools
