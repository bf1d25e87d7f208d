#include "tools/ucg_plan/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace ucg::tools {

using graph::Collective;

namespace {

/// The most numbers of ranks in a list. A longer list is a mistake: proofs of so many cases would
/// never end.
constexpr std::size_t kRankCountsMax = 1 << 16;

Result<Rank> parse_rank(std::string_view text) {
    Rank value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1) {
        return failure(Code::invalid_argument,
                       "expected a number of ranks from 1 to {}, found \"{}\"",
                       std::numeric_limits<Rank>::max(), text);
    }
    return value;
}

Status append_range(std::string_view text, std::vector<Rank>& numbers) {
    const std::size_t dots = text.find("..");
    const Result<Rank> first = parse_rank(text.substr(0, dots));
    if (!first) {
        return first.status();
    }
    const Result<Rank> last =
        dots == std::string_view::npos ? first : parse_rank(text.substr(dots + 2));
    if (!last) {
        return last.status();
    }
    if (*last < *first) {
        return failure(Code::invalid_argument, "\"{}\" ends before it begins", text);
    }
    for (std::int64_t i = *first; i <= *last; ++i) {
        if (numbers.size() == kRankCountsMax) {
            return failure(Code::invalid_argument, "expected at most {} numbers", kRankCountsMax);
        }
        numbers.push_back(static_cast<Rank>(i));
    }
    return {};
}

std::vector<bool> values(Which which, bool varies, bool otherwise) {
    if (!varies) {
        return {otherwise};
    }
    return which == Which::both ? std::vector<bool>{false, true}
                                : std::vector<bool>{which == Which::yes};
}

std::vector<Rank> roots_of(const Sweep& sweep, Collective collective, Rank ranks) {
    if (!graph::rooted(collective)) {
        return {0};
    }
    std::vector<Rank> roots;
    for (const std::string& which : sweep.roots) {
        if (which == "all") {
            for (Rank rank = 0; rank < ranks; ++rank) {
                roots.push_back(rank);
            }
        } else {
            roots.push_back(which == "first" ? 0 : which == "mid" ? ranks / 2 : ranks - 1);
        }
    }
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
}

std::vector<std::uint64_t> uneven_blocks(Collective collective, std::uint64_t bytes, Rank ranks) {
    std::vector<std::uint64_t> blocks;
    if (graph::has_block_vectors(collective)) {
        for (Rank rank = 0; rank < ranks; ++rank) {
            blocks.push_back(bytes * (static_cast<std::uint64_t>(rank) % 3));
        }
    }
    return blocks;
}

/// Appends the questions of one collective for one number of ranks.
void append_questions(const Sweep& sweep, Collective collective, Rank ranks,
                      std::vector<PlacedQuestion>& list) {
    const bool can_be_in_place = graph::has_in_place(collective);
    PlacedQuestion next;
    next.question.collective = collective;
    next.question.rank_count = ranks;
    next.question.element_bytes = sweep.element_bytes;
    const std::vector<std::uint64_t> no_bytes = {0};
    for (const std::uint64_t bytes : collective == Collective::barrier ? no_bytes : sweep.bytes) {
        next.question.bytes = bytes;
        next.question.blocks = uneven_blocks(collective, bytes, ranks);
        for (const Rank root : roots_of(sweep, collective, ranks)) {
            next.question.root = root;
            for (const bool in_place : values(sweep.in_place, can_be_in_place, false)) {
                next.question.in_place = in_place;
                for (const bool commutative :
                     values(sweep.commutative, graph::reduces(collective), true)) {
                    next.question.commutative = commutative;
                    for (const Rank hosts : sweep.host_counts) {
                        next.hosts = hosts;
                        if (hosts <= ranks) {
                            list.push_back(next);
                        }
                    }
                }
            }
        }
    }
}

} // namespace

Result<std::vector<Rank>> parse_ranks(std::string_view text) {
    std::vector<Rank> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        if (Status status = append_range(text.substr(begin, end - begin), numbers); !status.ok()) {
            return status;
        }
        begin = end + 1;
    }
    return numbers;
}

std::string_view name(Which which) {
    switch (which) {
    case Which::both: return "both";
    case Which::yes: return "yes";
    case Which::no: return "no";
    }
    return "?";
}

std::vector<PlacedQuestion> questions(const Sweep& sweep) {
    std::vector<PlacedQuestion> list;
    for (const Rank ranks : sweep.rank_counts) {
        for (const Collective collective : sweep.collectives) {
            append_questions(sweep, collective, ranks, list);
        }
    }
    return list;
}

} // namespace ucg::tools
