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

/// From the start of sending `bytes` to the end of receiving them: o + (bytes - 1) G + L + o.
double message_ns(const LogGp& model, std::uint64_t bytes);

/// The network by the pipelining postal model (network_model.hpp): a multicast of b messages of n
/// bytes takes alpha_p + b (alpha_r + n beta). gamma is in the profile's `reduce_per_byte_ns`.
struct NetworkPostal {
    double alpha_p_ns = 0; ///< What later messages overlap.
    double alpha_r_ns = 0; ///< What each further message costs.
    double beta_ns_per_byte = 0;
    bool measured = false;

    bool operator==(const NetworkPostal&) const = default;
};

/// One regression on the best times that were seen, one on those in the middle.
struct NetworkCosts {
    NetworkPostal minimum;
    NetworkPostal median;

    bool operator==(const NetworkCosts&) const = default;
};

/// Links that messages of several ranks want at once.
struct LinkCosts {
    /// How many times as long as its load takes by its rate a link is busy where messages meet on
    /// it; at least 1.
    double contention = 1;
    bool measured = false;

    bool operator==(const LinkCosts&) const = default;
};

struct Profile {
    /// Index: topo::Distance.
    std::array<LogGp, topo::kDistanceCount> levels;
    /// Messages of the library were timed there; else `levels` has the built-in default.
    std::array<bool, topo::kDistanceCount> levels_measured = {};
    double copy_per_byte_ns = 0;   ///< Copying within one process, in cache.
    double reduce_per_byte_ns = 0; ///< Per byte of one operand.
    double reduce_fixed_ns = 0;    ///< Per reduction.
    MemoryModel memory;            ///< Ranks of a node that read one another's memory.
    /// Once it is measured, `levels[network]` follows from its median, and the gap per byte from a
    /// stream where that is larger.
    NetworkCosts network;
    LinkCosts links; ///< Between hosts.

    const LogGp& level(topo::Distance distance) const {
        return levels[static_cast<std::size_t>(distance)];
    }
    bool operator==(const Profile&) const = default;
};

/// Typical of current x86 servers with Ethernet: used until the machine has been measured, where
/// processors.hpp has nothing nearer.
const Profile& default_profile();

/// What carries messages between hosts, as far as a library sees it without measuring.
enum class NetworkKind : std::uint8_t {
    unknown,    ///< Of an adapter that serves user space; or nothing is known.
    tcp,        ///< The kernels of both ends: each message costs both system calls.
    one_kernel, ///< The same where it is one kernel: containers, pods, virtual hosts. No wire.
};
inline constexpr std::array kNetworks = {NetworkKind::unknown, NetworkKind::tcp,
                                         NetworkKind::one_kernel};
std::string_view name(NetworkKind network);

/// By what time of a short message, one way, to plan where messages were seen to take `seen_ns`
/// when a group was made: the nearest, by ratio, of the powers of ten from 10 us to 1 s, which are
/// so far apart that what is seen on one network hardly ever falls on both sides of a border; 0,
/// which is as built in, for anything up to four times as long as such a network's built-in costs
/// have it, or as many times more as ranks share a processor: they wait for one another.
double listed_message_ns(NetworkKind network, double seen_ns, double ranks_per_cpu = 1);

/// The profile with the built-in costs of such a network, of which a short message takes
/// `message_ns` one way; 0: as built in. Unless its own costs are others than those of
/// default_profile(): then somebody has measured them.
Profile with_network(Profile profile, NetworkKind network, double message_ns = 0);

/// Has nobody measured the network, so that with_network() has a say?
bool has_builtin_network(const Profile& profile);

/// Equal for equal profiles, on every rank and in every build: ranks compare it before they plan.
std::uint64_t hash_of(const Profile& profile);

/// The version of the TOML form that is written, and the only one that is read.
inline constexpr std::uint64_t kProfileVersion = 1;

/// TOML: the version, [compute], a table for each level ([levels.cache]), the memory model
/// ([memory.reduce], [memory.levels.cache], [memory.caches.l2], [memory.cma], [memory.copies],
/// [memory.wake]), and
/// the network ([network.minimum], [network.median], [network.links]). Parsing what was printed
/// gives an equal value. REQUIRES: finite numbers.
std::string to_toml(const Profile& profile);
/// A table that is missing has the values of `base`. In one that is there every key must
/// be, and no other may. Fails with invalid_argument and "line L: key: expected ..., found ...".
Result<Profile> parse_toml(std::string_view text, const Profile& base = default_profile());

enum class Unit : std::uint8_t { nanoseconds, bytes, times, truth };

/// What a key of the TOML form says.
struct NamedFigure {
    std::string table; ///< "memory.cma"
    std::string key;   ///< "fixed_ns"
    double value = 0;
    Unit unit = Unit::nanoseconds; ///< Lengths at which something is decided are in bytes.

    std::string path() const { return table + '.' + key; }
};

/// All of them but the marks of what was measured, in the order of the TOML form.
std::vector<NamedFigure> figures_of(const Profile& profile);

} // namespace ucg::cost
