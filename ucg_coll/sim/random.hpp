// Random delays. Each is a function of the seed and of what it delays (a rank's n-th message, say),
// not of what was drawn before: a simulation gets the same numbers in whatever order it goes
// through its events, and a rank's delays stay the same when other ranks' programs change.
#pragma once

#include <cstdint>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

/// A distribution of delays, which are never negative.
struct Distribution {
    enum class Kind : std::uint8_t {
        none,        ///< No delay.
        uniform,     ///< Between `first` and `second`, in ns.
        exponential, ///< With mean `first`, in ns.
        normal,      ///< Of mean `first` and standard deviation `second` in ns before it is cut off
                     ///< at 0, that is, drawn anew until it is not negative.
        pareto,      ///< At least `first`, in ns, longer than t with probability
                     ///< (first / t)^second. No mean for second <= 1.
    };
    Kind kind = Kind::none;
    double first = 0;
    double second = 0;

    bool operator==(const Distribution&) const = default;
};

/// Checks that the parameters are finite and in range. The message says what is not.
Status check(const Distribution& distribution);

/// What a delay belongs to.
enum class Stream : std::uint8_t { arrival, message, computation, flag_slot };

/// Returns the delay of the `index`-th event of its kind at `rank`, at most kTimeEnd. It is a pure
/// function; logarithm and cosine are the C library's. REQUIRES: check(distribution).ok().
Picoseconds draw(const Distribution& distribution, std::uint64_t seed, Stream stream, Rank rank,
                 std::uint64_t index);

} // namespace ucg::sim
