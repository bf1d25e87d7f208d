// Many questions: what "ucg_plan verify" goes through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ucg_plan/question.hpp"

namespace ucg::tools {

/// "2..64,128" as numbers. Fails with invalid_argument, naming the part that is wrong.
Result<std::vector<Rank>> parse_ranks(std::string_view text);

/// Which of two values of a property to try.
enum class Which { both, yes, no };
std::string_view name(Which which);

struct Sweep {
    std::vector<graph::Collective> collectives;
    std::vector<Rank> rank_counts;
    std::vector<Rank> host_counts; ///< Those that exceed the ranks are left out.
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

/// All questions, those to few ranks first. Where a collective does not have a property (a root, an
/// operator, MPI_IN_PLACE), it is not varied. Block vectors are 0, 1, 2, 0, 1, ... times `bytes`
/// long.
std::vector<PlacedQuestion> questions(const Sweep& sweep);

} // namespace ucg::tools
