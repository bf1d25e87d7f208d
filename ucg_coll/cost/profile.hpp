// What things cost, as plain values with units in their names. The planner compares algorithms with
// them; `ucg_tune` measures them, and what has not been measured has the built-in default.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/memory_model.hpp"

namespace ucg::cost {

/// LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995) for one level of the machine.
struct LogGp {
    double latency_ns = 0;      ///< L: from the end of sending to the start of receiving.
    double overhead_ns = 0;     ///< o: what sending or receiving a message costs the processor.
    double gap_ns = 0;          ///< g: between two consecutive messages of one sender.
    double gap_per_byte_ns = 0; ///< G: per byte of a long message.

    bool operator==(const LogGp&) const = default;
};

/// Returns the time from the start of sending `bytes` to the end of receiving them:
/// o + (bytes - 1) G + L + o.
double message_ns(const LogGp& model, std::uint64_t bytes);

/// The network by the pipelining postal model (network_model.hpp): a multicast of b messages of n
/// bytes takes alpha_p + b (alpha_r + n beta). gamma is in the profile's `reduce_per_byte_ns`.
struct NetworkPostal {
    double alpha_p_ns = 0; ///< The part of the latency that later messages overlap.
    double alpha_r_ns = 0; ///< What each further message costs.
    double beta_ns_per_byte = 0;
    bool measured = false;

    bool operator==(const NetworkPostal&) const = default;
};

/// Two regressions of the network's costs: on the best times that were seen, and on the medians.
struct NetworkCosts {
    NetworkPostal minimum;
    NetworkPostal median;

    bool operator==(const NetworkCosts&) const = default;
};

/// The cost of links between hosts on which messages of several ranks meet.
struct LinkCosts {
    /// The time for which a link is busy where messages meet on it, divided by the time that its
    /// load takes at its rate; at least 1.
    double contention = 1;
    bool measured = false;

    bool operator==(const LinkCosts&) const = default;
};

/// All costs of a machine and of its network.
struct Profile {
    /// What messages cost; index: topo::Distance.
    std::array<LogGp, topo::kDistanceCount> levels;
    /// Whether messages of the library were timed at a level; else `levels` has the built-in
    /// default. Index: topo::Distance.
    std::array<bool, topo::kDistanceCount> levels_measured = {};
    double copy_per_byte_ns = 0;   ///< Copying within one process, in cache.
    double reduce_per_byte_ns = 0; ///< Per byte of one operand.
    double reduce_fixed_ns = 0;    ///< Per reduction.
    MemoryModel memory;            ///< What ranks of a node pay for one another's memory.
    /// Once this is measured, `levels[network]` follows from its median; its gap per byte is that
    /// of a stream of messages where that is larger.
    NetworkCosts network;
    LinkCosts links; ///< Between hosts.

    const LogGp& level(topo::Distance distance) const {
        return levels[static_cast<std::size_t>(distance)];
    }
    bool operator==(const Profile&) const = default;
};

/// Returns costs that are typical of current x86 servers with Ethernet. They are used until the
/// machine has been measured, where processors.hpp has none of its kind of processor.
const Profile& default_profile();

/// What carries messages between hosts, as far as a library sees it without measuring.
enum class NetworkKind : std::uint8_t {
    unknown,    ///< An adapter that serves user space; or nothing is known.
    tcp,        ///< The kernels of both ends: each message costs each end a system call.
    one_kernel, ///< TCP within one kernel (containers, pods, virtual hosts): there is no wire.
};
inline constexpr std::array kNetworks = {NetworkKind::unknown, NetworkKind::tcp,
                                         NetworkKind::one_kernel};
std::string_view name(NetworkKind network);

/// Returns the one-way time of a short message by which to plan where messages were seen to take
/// `seen_ns` when a group was made; 0 stands for the built-in costs of such a network. It is 0 if
/// messages took up to four times as long as by the built-in costs, or that times the ranks of a
/// processor where ranks share it and wait for one another. Else it is the nearest, by ratio, of
/// the powers of ten from 10 us to 1 s, which are so far apart that what is seen on one network
/// hardly ever falls on both sides of a border.
double listed_message_ns(NetworkKind network, double seen_ns, double ranks_per_cpu = 1);

/// Returns the profile with the built-in costs of such a network, where a short message takes
/// `message_ns` one way; 0: as built in. If the profile's network costs are not those of
/// default_profile(), somebody has measured them, and it is returned unchanged.
Profile with_network(Profile profile, NetworkKind network, double message_ns = 0);

/// Returns whether the profile has the network costs of default_profile(), which nobody has
/// measured, so that with_network() may replace them.
bool has_builtin_network(const Profile& profile);

/// Returns a hash that is equal for equal profiles, on every rank and in every build: ranks compare
/// it before they plan.
std::uint64_t hash_of(const Profile& profile);

/// The largest number of nanoseconds, or ratio, in the TOML form. As a time it is longer than a
/// day. Prices, which are sums of such numbers times lengths, stay finite.
inline constexpr double kFigureMax = 1e14;

/// The version of the TOML form that is written, and the only one that is read.
inline constexpr std::uint64_t kProfileVersion = 1;

/// Returns the profile as TOML: the version, [compute], a table for each level ([levels.cache]),
/// the memory model ([memory.reduce], [memory.levels.cache], [memory.caches.l2], [memory.cma],
/// [memory.copies], [memory.wake]), and the network ([network.minimum], [network.median],
/// [network.links]). Parsing it gives an equal value. REQUIRES: numbers up to kFigureMax.
std::string to_toml(const Profile& profile);
/// Parses the TOML form. A table that is missing has the values of `base`. In a table that is there
/// every key must be, and no other may; marks of what was measured may be missing, for it was not.
/// Fails with invalid_argument and "line L: key: expected ..., found ...".
Result<Profile> parse_toml(std::string_view text, const Profile& base = default_profile());

enum class Unit : std::uint8_t { nanoseconds, bytes, times, truth };

/// One key of the TOML form with its value.
struct NamedFigure {
    std::string table; ///< "memory.cma"
    std::string key;   ///< "fixed_ns"
    double value = 0;
    Unit unit = Unit::nanoseconds; ///< Lengths at which something is decided are in bytes.

    std::string path() const { return table + '.' + key; }
};

/// Returns all figures of a profile, without the marks of what was measured, in the order of the
/// TOML form.
std::vector<NamedFigure> figures_of(const Profile& profile);

} // namespace ucg::cost
