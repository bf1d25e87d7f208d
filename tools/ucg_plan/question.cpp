#include "tools/ucg_plan/question.hpp"

#include <fmt/format.h>

#include "tools/cli.hpp"
#include "tools/ucg_plan/this_machine.hpp"

namespace ucg::tools {

using graph::Blocks;
using graph::Collective;
using graph::Request;

namespace {

std::uint64_t block(const Question& question, Rank index) {
    return question.blocks.empty() ? question.bytes
                                   : question.blocks[static_cast<std::size_t>(index)];
}

/// Returns blocks that lie end to end, beginning with block `first` of the question.
Blocks blocks_from(const Question& question, Rank first) {
    Blocks blocks;
    std::uint64_t offset = 0;
    for (Rank i = 0; i < question.rank_count; ++i) {
        const std::int64_t index = (std::int64_t{first} + i) % question.rank_count;
        blocks.bytes.push_back(block(question, static_cast<Rank>(index)));
        blocks.offsets.push_back(offset);
        offset += blocks.bytes.back();
    }
    return blocks;
}

/// Returns the mean length of the blocks that ranks send one another: rank r keeps block 2r mod
/// ranks.
std::uint64_t mean_block(const Question& question) {
    const auto ranks = static_cast<std::uint64_t>(question.rank_count);
    if (question.blocks.empty() || ranks == 1) {
        return question.bytes;
    }
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < ranks; ++i) {
        total += ranks * question.blocks[i] - question.blocks[2 * i % ranks];
    }
    return divide_up(total, ranks * (ranks - 1));
}

/// Sets the blocks of a ring: the first block goes down and comes from above, the second one the
/// other way.
void add_ring(Request& request, const Question& question, Rank rank) {
    const Rank above = (rank + 1) % question.rank_count;
    const Rank below = (rank + question.rank_count - 1) % question.rank_count;
    const std::uint64_t own = block(question, rank);
    const std::uint64_t from_above = block(question, above);
    request.send = {{own, own}, {0, own}, {below, above}};
    request.receive = {{from_above, block(question, below)}, {0, from_above}, {above, below}};
}

void add_blocks(Request& request, const Question& question, Rank rank) {
    request.bytes = 0;
    switch (question.collective) {
    case Collective::allgatherv: request.receive = blocks_from(question, 0); break;
    case Collective::reduce_scatter:
        request.receive = blocks_from(question, 0);
        request.receive.offsets.clear();
        break;
    case Collective::alltoallv:
        request.receive = blocks_from(question, rank);
        request.bytes = question.mean_block_known ? mean_block(question) : 0;
        if (!request.in_place) {
            request.send = request.receive;
        }
        break;
    case Collective::neighbor_alltoallv: add_ring(request, question, rank); break;
    case Collective::gatherv:
        request.bytes = block(question, rank);
        if (rank == question.root) {
            request.receive = blocks_from(question, 0);
        }
        break;
    case Collective::scatterv:
        request.bytes = block(question, rank);
        if (rank == question.root) {
            request.send = blocks_from(question, 0);
        }
        break;
    default: break;
    }
}

std::string join(const std::vector<std::uint64_t>& numbers) {
    return fmt::format("{}", fmt::join(numbers, ","));
}

template <typename HostOf>
topo::Placement on_hosts(Rank rank_count, HostOf host_of) {
    return topo::Placement(rank_count, [&](Rank rank) {
        topo::Place place;
        place.host = static_cast<std::uint32_t>(host_of(rank));
        return topo::forget_inside(place, topo::Distance::host);
    });
}

std::vector<std::string_view> collective_names() {
    std::vector<std::string_view> names;
    names.reserve(graph::kCollectives.size());
    for (const Collective collective : graph::kCollectives) {
        names.push_back(graph::name(collective));
    }
    return names;
}

} // namespace

Request request_of(const Question& question, Rank rank) {
    Request request;
    request.collective = question.collective;
    request.rank_count = question.rank_count;
    request.root = question.root;
    request.bytes = question.collective == Collective::barrier ? 0 : question.bytes;
    request.element_bytes = question.element_bytes;
    request.commutative = question.commutative;
    request.nonblocking = question.nonblocking;
    request.in_place =
        question.in_place && (!graph::rooted(question.collective) || rank == question.root);
    if (graph::has_block_vectors(question.collective)) {
        add_blocks(request, question, rank);
    }
    return request;
}

std::string describe(const Question& question) {
    std::string text(graph::name(question.collective));
    if (graph::has_block_vectors(question.collective) && !question.blocks.empty()) {
        text += fmt::format(" of blocks of {} bytes", join(question.blocks));
    } else if (question.collective != Collective::barrier) {
        text += fmt::format(" of {} bytes", question.bytes);
    }
    text += fmt::format(" among {} ranks", question.rank_count);
    if (graph::rooted(question.collective)) {
        text += fmt::format(", root {}", question.root);
    }
    if (question.in_place) {
        text += ", in place";
    }
    text += question.nonblocking ? ", nonblocking" : "";
    if (graph::reduces(question.collective)) {
        text += fmt::format(", elements of {} bytes{}", question.element_bytes,
                            question.commutative ? "" : ", operands in rank order");
    }
    return text;
}

std::string to_options(const Question& question) {
    std::string text =
        fmt::format("--collective {} --bytes {}", graph::name(question.collective), question.bytes);
    if (!question.blocks.empty()) {
        text += fmt::format(" --blocks {}", join(question.blocks));
    }
    if (graph::rooted(question.collective)) {
        text += fmt::format(" --root {}", question.root);
    }
    text += fmt::format(" --element-bytes {}", question.element_bytes);
    text += question.in_place ? " --in-place" : "";
    text += question.commutative ? "" : " --non-commutative";
    text += question.nonblocking ? " --nonblocking" : "";
    return text;
}

topo::Placement spread(Rank rank_count, Rank hosts) {
    UCG_ASSERT(hosts >= 1 && hosts <= rank_count);
    const Rank fewest = rank_count / hosts;
    const Rank larger = rank_count % hosts; // Hosts with one rank more; they come first.
    const Rank on_larger = larger * (fewest + 1);
    return on_hosts(rank_count, [=](Rank rank) {
        return rank < on_larger ? rank / (fewest + 1) : larger + (rank - on_larger) / fewest;
    });
}

topo::Placement fill_hosts(Rank rank_count, Rank ranks_per_host) {
    return on_hosts(rank_count, [=](Rank rank) { return rank / ranks_per_host; });
}

topo::Placement on_sockets(const topo::Placement& placement, Rank sockets) {
    if (sockets == 1) {
        return placement;
    }
    return topo::Placement(placement.rank_count(), [&](Rank rank) {
        const std::uint32_t host = placement.host(rank);
        const Rank index = placement.index_on_host(rank);
        const auto socket =
            static_cast<std::uint32_t>(std::int64_t{index} * sockets /
                                       static_cast<std::int64_t>(placement.ranks_on(host).size()));
        return topo::Place{.host = host,
                           .package = socket,
                           .numa = socket,
                           .cache = socket,
                           .core = static_cast<std::uint32_t>(index)};
    });
}

Result<topo::Placement> read_placement(const std::string& path) {
    const Result<std::string> text = read_input(path);
    if (!text) {
        return text.status();
    }
    Result<topo::Placement> placement = topo::parse_placement(*text);
    if (!placement) {
        return in_file(path, placement.status());
    }
    if (placement->rank_count() == 0) {
        return in_file(path, Status(Code::invalid_argument, "no ranks"));
    }
    return placement;
}

std::string describe(const topo::Placement& placement) {
    return fmt::format("{} rank{} on {} host{}", placement.rank_count(),
                       placement.rank_count() == 1 ? "" : "s", placement.host_count(),
                       placement.host_count() == 1 ? "" : "s");
}

void QuestionOptions::add_options(CLI::App& app, Needs needs) {
    CLI::Option* collective = add_choice_option(
        app, "--collective", question_.collective,
        {graph::kCollectives.begin(), graph::kCollectives.end()}, "The collective");
    const bool is_needed = needs == Needs::collective;
    collective->required(is_needed)->description(fmt::format("The collective: {}{}",
                                                             fmt::join(collective_names(), ", "),
                                                             is_needed ? "" : " (default: all)"));
    collective_ = collective;
    const CLI::Validator count = whole_number(1, kRanksMax);
    CLI::Option* ranks = app.add_option(
        "--ranks", question_.rank_count,
        fmt::format("How many ranks (default: --ranks-per-host times --hosts, else {})",
                    is_needed ? "1" : "no request"));
    ranks->transform(count)->type_name("N");
    add_size_option(
        app, "--bytes", question_.bytes,
        "Length of the vector, or of one rank's block where ranks have blocks; 64k, 1M: "
        "powers of 1024 (default: 0)");
    add_size_option(app, "--blocks", question_.blocks,
                    "Lengths of the ranks' blocks, one each, for the v-variants and "
                    "reduce_scatter; alltoallv: rank r sends block (r + p) mod ranks to rank p "
                    "(default: all of --bytes)")
        ->delimiter(',');
    root_ = app.add_option("--root", question_.root, "The root's rank (default: 0)")
                ->transform(whole_number(0, kRanksMax - 1))
                ->type_name("RANK");
    app.add_option("--element-bytes", question_.element_bytes,
                   "Bytes of an element: reductions cut vectors at multiples of it (default: 8)")
        ->transform(size_in_bytes(1, kBytesMax))
        ->type_name("SIZE");
    app.add_flag("--in-place", question_.in_place, "MPI_IN_PLACE, at the root where there is one");
    app.add_flag("--non-commutative", ordered_, "The operator needs its operands in rank order");
    app.add_flag("--nonblocking", question_.nonblocking,
                 "The call returns before its end: ranks may help one another");
    ranks_ = ranks;
    add_placement_options(app);
}

void QuestionOptions::add_placement_options(CLI::App& app) {
    const CLI::Validator count = whole_number(1, kRanksMax);
    CLI::Option_group& group = *app.add_option_group("Placement", "Where the ranks are");
    CLI::Option* file = group.add_option("--placement", placement_path_,
                                         "File as \"ucg_topo placement\" prints; \"-\": standard "
                                         "input");
    file->type_name("FILE")->excludes(ranks_);
    CLI::Option* hosts = group.add_option("--hosts", hosts_count_,
                                          "Hosts, the ranks spread evenly over them (default: 1)");
    hosts->transform(count)->type_name("N")->excludes(file);
    group
        .add_option("--ranks-per-host", ranks_per_host_count_,
                    "Consecutive ranks on each host; with --hosts, --ranks may be left out")
        ->transform(count)
        ->type_name("N")
        ->excludes(file);
    CLI::Option* sockets =
        group
            .add_option("--sockets", sockets_,
                        "Sockets of each host, over which its ranks are spread evenly, rank after "
                        "rank (default: 1, with all ranks of a host equally far apart)")
            ->transform(count)
            ->type_name("N")
            ->excludes(file);
    group
        .add_flag("--this-machine", this_machine_,
                  "Plan as processes on this machine do: hosts are like it, with rank after rank "
                  "on core after core; costs, and ranks per CPU, are those that a group would find "
                  "here, unless --profile and --ranks-per-cpu say otherwise")
        ->excludes(file)
        ->excludes(sockets);
    group
        .add_flag("--unbound", unbound_,
                  "The same, with ranks that are bound to no core, as under \"mpirun --bind-to "
                  "none\"")
        ->excludes(file)
        ->excludes(sockets);
    hosts_ = hosts;
    placement_ = file;
}

Rank QuestionOptions::rank_count() const {
    if (placement_->count() > 0) {
        return 0;
    }
    if (ranks_->count() == 0 && ranks_per_host_count_ > 0) {
        return hosts_count_ * ranks_per_host_count_;
    }
    return question_.rank_count;
}

void QuestionOptions::check_blocks(Rank ranks) const {
    if (question_.blocks.empty()) {
        return;
    }
    if (!graph::has_block_vectors(question_.collective)) {
        throw CLI::ValidationError("--blocks", fmt::format("{} has one length, --bytes",
                                                           graph::name(question_.collective)));
    }
    if (question_.blocks.size() != static_cast<std::size_t>(ranks)) {
        throw CLI::ValidationError("--blocks", fmt::format("expected {} lengths, one per rank, "
                                                           "found {}",
                                                           ranks, question_.blocks.size()));
    }
}

void QuestionOptions::check_uses() const {
    if (!has_collective()) { // Each collective takes what it has.
        return;
    }
    const Collective collective = question_.collective;
    if (root_->count() > 0 && !graph::rooted(collective)) {
        throw CLI::ValidationError("--root",
                                   fmt::format("{} has no root", graph::name(collective)));
    }
    if (ordered_ && !graph::reduces(collective)) {
        throw CLI::ValidationError("--non-commutative",
                                   fmt::format("{} has no operator", graph::name(collective)));
    }
}

void QuestionOptions::check() const {
    check_uses();
    if (std::int64_t{hosts_count_} * ranks_per_host_count_ > std::int64_t{kRanksMax}) {
        throw CLI::ValidationError(
            "--hosts", fmt::format("expected at most {} ranks in all, found {} times {}", kRanksMax,
                                   hosts_count_, ranks_per_host_count_));
    }
    const Rank ranks = rank_count();
    if (ranks == 0) { // The other checks must wait for the placement file.
        return;
    }
    if (root_->count() > 0 && question_.root >= ranks) {
        throw CLI::ValidationError("--root", fmt::format("expected a rank in 0 .. {}, found {}",
                                                         ranks - 1, question_.root));
    }
    if (hosts_count_ > ranks) {
        throw CLI::ValidationError(
            "--hosts", fmt::format("{} hosts are more than the {} ranks", hosts_count_, ranks));
    }
    if (hosts_->count() > 0 && ranks_per_host_count_ > 0 &&
        ranks != hosts_count_ * ranks_per_host_count_) {
        throw CLI::ValidationError("--ranks",
                                   fmt::format("{} ranks are not {} hosts with {} each", ranks,
                                               hosts_count_, ranks_per_host_count_));
    }
    check_blocks(ranks);
}

Result<topo::Placement> QuestionOptions::placement() const {
    if (placement_->count() == 0) {
        topo::Placement hosts = ranks_per_host_count_ > 0
                                    ? fill_hosts(rank_count(), ranks_per_host_count_)
                                    : spread(rank_count(), hosts_count_);
        if (on_this_machine()) {
            return on_hosts_like_this(hosts, unbound_);
        }
        return on_sockets(hosts, sockets_);
    }
    Result<topo::Placement> placement = read_placement(placement_path_);
    if (!placement) {
        return placement.status();
    }
    const std::size_t block_count = question_.blocks.size();
    if (block_count > 0 && block_count != static_cast<std::size_t>(placement->rank_count())) {
        return in_file(placement_path_,
                       failure(Code::invalid_argument, "{} ranks, but --blocks has {} lengths",
                               placement->rank_count(), block_count));
    }
    return placement;
}

Question QuestionOptions::question(const topo::Placement& placement, bool links_known) const {
    Question question = question_;
    question.mean_block_known = links_known;
    question.rank_count = placement.rank_count();
    question.commutative = !ordered_;
    return question;
}

} // namespace ucg::tools
