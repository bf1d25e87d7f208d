// Models of a network of equal links, and what a phase of an exchange costs under them: a phase of
// b is what recursive multiplying does b + 1 ranks at a time, each sending its vector of n bytes to
// the b others and combining the b vectors it receives with its own.
//
// Equations are those of Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for
// AllReduce: Now with simulation" (Parallel Computing, 2017). LogP is by Culler et al. (PPoPP
// 1993), LogfP by Hoefler, Mehlan, Mietke and Rehm (IPDPS 2006), LogGP (`LogGp`, profile.hpp) by
// Alexandrov et al. (SPAA 1995).
#pragma once

#include <cstdint>
#include <span>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

/// A message of n bytes takes alpha + n beta and keeps its sender for as long; a reduction takes
/// n gamma and a fixed time.
struct Postal {
    double alpha_ns = 0;          ///< Latency.
    double beta_ns_per_byte = 0;  ///< Inverse bandwidth.
    double gamma_ns_per_byte = 0; ///< Combining two vectors, per byte of one of them.
    double reduce_fixed_ns = 0;   ///< Combining two vectors, whatever their length.

    bool operator==(const Postal&) const = default;
};

/// The consecutive messages of a sender leave alpha_r + n beta apart, and each arrives alpha_p
/// after it has left: alpha_p is the latency that later messages overlap, alpha_r what they cannot.
struct PipeliningPostal {
    double alpha_p_ns = 0;
    double alpha_r_ns = 0;
    double beta_ns_per_byte = 0;
    double gamma_ns_per_byte = 0; ///< Combining two vectors, per byte of one of them.
    double reduce_fixed_ns = 0;   ///< Combining two vectors, whatever their length.

    bool operator==(const PipeliningPostal&) const = default;
};

/// Short messages: o of the processor at each end, a gap g between those of one sender.
struct LogP {
    double latency_ns = 0;
    double overhead_ns = 0;
    double gap_ns = 0;

    bool operator==(const LogP&) const = default;
};

/// LogP where the first f messages of a burst leave without a gap.
struct LogfP {
    double latency_ns = 0;
    double overhead_ns = 0;
    double gap_ns = 0;
    std::uint32_t free_messages = 1; ///< f, at least 1; 1 is LogP.

    bool operator==(const LogfP&) const = default;
};

/// What one message does at its two ends, in any of the models. The sender's processor works for
/// `issue`. Then, once the sender's port is free, the message takes `inject` to leave, keeps the
/// port for `gap` longer, and arrives `flight` after it has left. The receiver's processor works
/// for `take` to take it in.
struct MessageTerms {
    double issue_ns = 0;
    double inject_ns = 0;
    double gap_ns = 0;
    double flight_ns = 0;
    double take_ns = 0;
    std::uint32_t free_messages = 1; ///< f: the first f of a burst leave without a gap among them.

    /// Returns the time of one message by itself, from the start of sending to the end of
    /// receiving.
    double total_ns() const { return issue_ns + inject_ns + flight_ns + take_ns; }
};

MessageTerms message_terms(const Postal& model, std::uint64_t bytes);
MessageTerms message_terms(const PipeliningPostal& model, std::uint64_t bytes);
MessageTerms message_terms(const LogP& model, std::uint64_t bytes);  ///< Ignores `bytes`.
MessageTerms message_terms(const LogfP& model, std::uint64_t bytes); ///< Ignores `bytes`.
MessageTerms message_terms(const LogGp& model, std::uint64_t bytes);

/// Returns the model of a profile's network, with the costs of the profile's reductions.
PipeliningPostal pipelining_postal(const NetworkPostal& network, const Profile& profile);
/// Returns the LogGP model that gives the same times to messages of one byte, single and many at
/// once, where a message occupies the processor for `overhead_ns` at each end. No more of the
/// overhead counts than fits between two messages, as a rank of a phase sends one message for each
/// that it receives.
LogGp loggp_of(const NetworkPostal& network, double overhead_ns);

/// Returns the time of combining two vectors of `bytes` (n): n gamma + the fixed part.
double combine_ns(const Postal& model, std::uint64_t bytes);
double combine_ns(const PipeliningPostal& model, std::uint64_t bytes);

/// Returns the time from the start of sending b messages one after another until the receiver of
/// the last one, which has waited for it, has taken it in. REQUIRES: b >= 1.
double last_arrival_ns(const MessageTerms& message, std::uint32_t b);

/// How many collectives of the same kind a collective to a root is priced to follow. A rank that
/// only sends waits for nothing and is soon ahead, so each of several in a row takes as long as the
/// busiest link or rank on the way is busy, and the path counts once. This is a count, not a cost
/// of some machine. With one before, as for collectives from a root, where ranks do wait, the rows
/// chosen on four virtual hosts (1 Gbit/s, reduce of 4 KiB) took 1.90 times as long as stock Open
/// MPI, with two 1.05 times.
inline constexpr double kBeforeAtRoot = 2;

/// Returns the time of a phase's messages: until each rank has taken in the b that are sent to it.
/// REQUIRES: b >= 1.
double exchange_ns(const MessageTerms& message, std::uint32_t b);

/// Returns b (alpha + n beta + n gamma + fixed): the time of a phase; equation 1's term where b
/// = 1.
double phase_ns(const Postal& model, std::uint32_t b, std::uint64_t bytes);
/// (3) alpha_p + b (alpha_r + n beta + n gamma), with the fixed part of the b reductions.
double phase_ns(const PipeliningPostal& model, std::uint32_t b, std::uint64_t bytes);
// These models have no price for reductions: they return the time of the messages alone.
double phase_ns(const LogP& model, std::uint32_t b, std::uint64_t bytes);
double phase_ns(const LogfP& model, std::uint32_t b, std::uint64_t bytes);
double phase_ns(const LogGp& model, std::uint32_t b, std::uint64_t bytes);

/// Returns the time of one phase after another, for the factors f_i = b_i + 1 of the number of
/// ranks: equation 1 where all factors are 2 and the model is postal, equation 4 where they are
/// equal, else the unnumbered sum that ends section 3. REQUIRES: factors >= 2.
template <typename Model>
double factored_ns(const Model& model, std::span<const std::uint32_t> factors,
                   std::uint64_t bytes) {
    double sum_ns = 0;
    for (const std::uint32_t factor : factors) {
        UCG_ASSERT(factor >= 2);
        sum_ns += phase_ns(model, factor - 1, bytes);
    }
    return sum_ns;
}

/// (5) Returns the b at which equation 4, seen as a function of real numbers, is least:
/// exp(W((alpha_p - r) / (e r)) + 1) - 1, where r, alpha_r in print, is all that each further
/// message costs: alpha_r + n beta + n gamma + fixed. It is infinite if r is 0. The result is for
/// people and pictures: exp differs between C libraries, so ranks must not decide by it.
double optimal_b(const PipeliningPostal& model, std::uint64_t bytes);

/// Returns the principal branch W of the inverse of z exp(z), to a few units in the last place;
/// close to -1/e, where it is vertical, as exactly as its argument is known.
/// REQUIRES: x >= -1/e, rounded.
double lambert_w(double x);

} // namespace ucg::cost
