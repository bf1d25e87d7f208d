// Sweeps over many questions, for "ucg_plan verify".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ucg_plan/question.hpp"

namespace ucg::tools {

/// Parses lists of numbers of ranks such as "2..64,128". Fails with invalid_argument and names the
/// part that is wrong.
Result<std::vector<Rank>> parse_ranks(std::string_view text);

/// Which of the two values of a property to try.
enum class Which { both, yes, no };
std::string_view name(Which which);

struct Sweep {
    std::vector<graph::Collective> collectives;
    std::vector<Rank> rank_counts;
    std::vector<Rank> host_counts; ///< Counts above the number of ranks are left out.
    /// Of a host; counts above the number of ranks that each host has are left out.
    std::vector<Rank> socket_counts;
    std::vector<std::uint64_t> bytes;
    std::vector<std::string> roots; ///< "all", "first", "mid", "last"
    std::uint64_t element_bytes = 8;
    Which in_place = Which::both;
    Which commutative = Which::both;
};

struct PlacedQuestion {
    Question question;
    Rank hosts = 1;
};

/// Returns all questions of the sweep, those to few ranks first. A property that a collective does
/// not have (a root, an operator, MPI_IN_PLACE) is not varied. Block vectors have lengths of 0, 1,
/// 2, 0, 1, ... times `bytes`.
std::vector<PlacedQuestion> questions(const Sweep& sweep);

} // namespace ucg::tools
