// The text form of Placement.
#include <array>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "topo/placement.hpp"
#include "topo/scanner.hpp"

namespace ucg::topo {

namespace {

struct Level {
    std::string_view word;
    std::uint32_t Place::*index;
    Distance distance;
};

// The levels inside a host, from the outside in.
constexpr std::array<Level, 4> kLevels = {{
    {"package", &Place::package, Distance::package},
    {"numa", &Place::numa, Distance::numa},
    {"cache", &Place::cache, Distance::cache},
    {"core", &Place::core, Distance::core},
}};

Place parse_place(Scanner& scanner) {
    Place place;
    place.known = Distance::host;
    scanner.expect("host");
    place.host = scanner.number32("a host's number");
    for (const Level& level : kLevels) {
        if (!scanner.accept(level.word)) {
            break;
        }
        place.*level.index = scanner.number32(fmt::format("a {}'s number", level.word));
        place.known = level.distance;
    }
    return place;
}

// Fails unless the line ends after the levels that were read; the message names the next level, if
// there is one.
void expect_no_more(Scanner& scanner, const Place& place) {
    for (const Level& level : kLevels) {
        if (level.distance < place.known) {
            scanner.end_of_line_or(level.word);
            return;
        }
    }
    scanner.end_of_line();
}

} // namespace

std::string to_text(const Placement& placement) {
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
        const Place place = placement.place(rank);
        fmt::format_to(out, "rank {}: host {}", rank, place.host);
        for (const Level& level : kLevels) {
            if (place.known > level.distance) {
                break;
            }
            fmt::format_to(out, " {} {}", level.word, place.*level.index);
        }
        text.push_back('\n');
    }
    return fmt::to_string(text);
}

Result<Placement> parse_placement(std::string_view text) {
    static constexpr auto kRanksMax = static_cast<std::size_t>(std::numeric_limits<Rank>::max());
    Scanner scanner(text);
    std::vector<Place> places;
    while (scanner.next_line()) {
        scanner.expect("rank");
        const std::uint64_t rank = scanner.number("a rank", kRanksMax - 1);
        if (rank != places.size()) {
            scanner.fail(fmt::format("expected rank {}, found rank {}", places.size(), rank));
        }
        scanner.expect(":");
        places.push_back(parse_place(scanner));
        expect_no_more(scanner, places.back());
    }
    if (!scanner.ok()) {
        return scanner.status();
    }
    return Placement(places);
}

} // namespace ucg::topo
