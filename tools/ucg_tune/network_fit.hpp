// From times of multicasts to the parameters of the pipelining postal model, as Ruefenacht, Bull
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

/// A rank sends `messages` of `bytes` to as many peers, or to fewer in turn, and each is answered
/// by 8 bytes: from the first send to the last answer.
struct Multicast {
    Sending sending = Sending::nonblocking;
    std::uint32_t messages = 1;
    std::uint64_t bytes = 0;
    std::vector<double> round_trip_ns;
    std::vector<double> issue_ns; ///< Starting the sends, or 0 where that is not apart.
};

/// Long messages to one peer, many under way, in batches that follow one another.
struct Stream {
    std::uint64_t message_bytes = 0;
    std::uint64_t batch_bytes = 0;
    std::vector<double> batch_ns; ///< From the first send to the last answer.
};

/// The gap per byte of a stream, the median of its batches; 0 of fewer than two. The first does not
/// count: links whose rate a bucket of tokens bounds let a bucketful pass at once, which is as much
/// as a multicast sends, and then no more than their rate.
double stream_gap_ns(const Stream& stream);

/// A pairwise alltoall: each of `ranks` sends `bytes` in long messages, to all others in turn, one
/// under way in each direction.
struct Exchange {
    Rank ranks = 0; ///< Of fewer than three nothing was measured.
    std::uint64_t bytes = 0;
    std::vector<double> batch_ns; ///< Until the last rank is done.
};

/// How many times as long the exchange takes as a rank's bytes take on a link by themselves, at
/// `gap_ns` each: the median of batches, at least 1. 0 where that was not measured. The first batch
/// does not count, since it connects.
double contention(const Exchange& exchange, double gap_ns);

struct Box {
    double minimum = 0;
    double low = 0; ///< First quartile.
    double median = 0;
    double high = 0;
    double maximum = 0;
};
/// All 0 without samples.
Box box_of(std::vector<double> samples);

struct NetworkFit {
    cost::NetworkCosts costs;
    double overhead_ns = 0; ///< Of the processor to start one message, median.
    /// Half a round trip of one shortest message: what an answer takes.
    double answer_minimum_ns = 0;
    double answer_median_ns = 0;
    std::vector<std::string> notes;
};

/// One way of a multicast, so that figures compare with the model: less the way of one answer where
/// answers overlap, half where each is awaited.
double one_way_ns(const Multicast& multicast, double round_trip_ns, double answer_ns);

/// alpha_p and alpha_r from a line through (messages, time) of the shortest nonblocking messages,
/// beta from how the slopes of such lines grow with the length. REQUIRES: nonblocking ones of 1 and
/// of another number of messages of the shortest length, each with samples.
NetworkFit fit_network(std::span<const Multicast> multicasts);

} // namespace ucg::tools
