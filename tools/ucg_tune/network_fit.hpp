// Fits the parameters of the pipelining postal model to times of multicasts, as Ruefenacht, Bull
// and Booth measure them (2017, section 5.1). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/ucg_tune/statistics.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

enum class Sending {
    nonblocking, ///< All messages of the multicast are started, then all answers awaited.
    blocking,    ///< Each message is answered before the next one is started.
};
std::string_view name(Sending sending);

/// The times of a multicast: a rank sends `messages` messages of `bytes` to as many peers, or to
/// fewer peers in rotation, and each message is answered by 8 bytes.
struct Multicast {
    Sending sending = Sending::nonblocking;
    std::uint32_t messages = 1;
    std::uint64_t bytes = 0;
    std::vector<double> round_trip_ns;
    std::vector<double> issue_ns; ///< Times to start the sends; 0 where not measured separately.
};

/// The times of long messages to one peer, many of them under way, in batches that follow one
/// another.
struct StreamTimes {
    std::uint64_t message_bytes = 0;
    std::uint64_t batch_bytes = 0;
    std::vector<double> batch_ns; ///< Times from the first send to the last answer.
};

/// Returns the gap per byte of a stream, the median of its batches, in nanoseconds; 0 of fewer than
/// two batches. The first batch does not count: links whose rate a token bucket limits let a
/// bucketful pass at once, which is as much as a multicast sends, and then no more than their rate.
double stream_gap_ns(const StreamTimes& stream);

/// The times of a pairwise alltoall: each of `ranks` sends `bytes` in long messages, to all others
/// in rotation, with one message under way in each direction.
struct PairwiseTimes {
    Rank ranks = 0; ///< With fewer than three nothing was measured.
    std::uint64_t bytes = 0;
    std::vector<double> batch_ns; ///< Times until the last rank is done.
};

/// Returns how many times as long the exchange takes as a rank's bytes would take on a link by
/// themselves, at `gap_ns` each: the median of batches, at least 1; 0 where it was not measured.
/// The first batch does not count, since connections are made during it.
double contention(const PairwiseTimes& exchange, double gap_ns);

struct Box {
    double minimum = 0;
    double low = 0; ///< First quartile.
    double median = 0;
    double high = 0;
    double maximum = 0;
};
/// Returns the box of these samples; all 0 without samples.
Box box_of(std::vector<double> samples);

struct NetworkFit {
    cost::NetworkCosts costs;
    double overhead_ns = 0; ///< Processor time to start one message, median.
    /// Half the round trip of one shortest message, which is the time of an answer.
    double answer_minimum_ns = 0;
    double answer_median_ns = 0;
    std::vector<std::string> notes;
};

/// Returns the time one way of a multicast, which compares with the model: where answers overlap,
/// the round trip less the time of one answer; where each answer is awaited, half the round trip.
double one_way_ns(const Multicast& multicast, double round_trip_ns, double answer_ns);

/// Fits alpha_p and alpha_r to a line through (messages, time) of the shortest nonblocking
/// messages, and beta to the growth of the slopes of such lines with the length. REQUIRES:
/// nonblocking multicasts of 1 and of another number of messages of the shortest length, each with
/// samples.
NetworkFit fit_network(std::span<const Multicast> multicasts);

} // namespace ucg::tools
