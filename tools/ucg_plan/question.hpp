// What the planner is asked, as a command line says it: one collective call by all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/cli.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::tools {

struct Question {
    graph::Collective collective = graph::Collective::allreduce;
    Rank rank_count = 1;
    Rank root = 0;
    std::uint64_t bytes = 0;
    /// Lengths of the ranks' blocks, for collectives with block vectors; empty: all are `bytes`.
    std::vector<std::uint64_t> blocks;
    std::uint64_t element_bytes = 8;
    bool in_place = false;
    bool commutative = true;
    bool nonblocking = false;
    /// Whether the ranks have agreed on the mean length of the blocks of an alltoallv, as ranks of
    /// the library do where they know the links between their hosts.
    bool mean_block_known = false;
};

/// Returns what `rank` asks for. Blocks lie end to end. For alltoallv, rank r sends block (r + p)
/// mod ranks to rank p, so that lengths differ and MPI_IN_PLACE is possible. For collectives that
/// have a root, only the root is in place.
graph::Request request_of(const Question& question, Rank rank);

/// Returns for example "allreduce of 8 bytes among 6 ranks, in place".
std::string describe(const Question& question);

/// Returns the options of `ucg_plan show` that ask this question, without those of the placement,
/// among which is the number of ranks.
std::string to_options(const Question& question);

/// Places `rank_count` ranks in rising order on `hosts` hosts, as evenly as possible: if the
/// division leaves a remainder, the first hosts have one rank more. REQUIRES: 1 <= hosts <=
/// rank_count.
topo::Placement spread(Rank rank_count, Rank hosts);

/// Places ranks in rising order on hosts of `ranks_per_host` ranks each; the last host has the
/// remaining ones.
topo::Placement fill_hosts(Rank rank_count, Rank ranks_per_host);

/// Returns `placement` with the ranks of each host spread over `sockets` sockets in rising order,
/// as evenly as possible, each on a core of its own; as it is for one socket. REQUIRES: sockets
/// >= 1.
topo::Placement on_sockets(const topo::Placement& placement, Rank sockets);

/// Reads a file as "ucg_topo placement" prints it; "-": standard input. Fails if it cannot be read,
/// is wrong or has no ranks.
Result<topo::Placement> read_placement(const std::string& path);

/// Returns for example "6 ranks on 2 hosts".
std::string describe(const topo::Placement& placement);

/// Adds an option for a size in bytes, or for a list of them: "8", "64k", "0,8,1M" (powers of
/// 1024). `value` must outlive the parsing.
template <typename T>
CLI::Option* add_size_option(CLI::App& app, const std::string& flag, T& value,
                             const std::string& description) {
    CLI::Option* option = app.add_option(flag, value, description);
    option->transform(size_in_bytes(0, kBytesMax))->type_name("SIZE");
    return option;
}

/// The options that ask a question and place the ranks.
class QuestionOptions {
  public:
    enum class Needs { nothing, collective };

    /// Adds the options. This object must outlive the parsing.
    void add_options(CLI::App& app, Needs needs);

    /// Checks what CLI11's own checks cannot see. To be called when all options are parsed. Throws
    /// CLI::ParseError.
    void check() const;

    bool has_collective() const { return !collective_->empty(); }
    /// Returns whether an option about the ranks was given: their number, the hosts or the
    /// placement.
    bool is_asked() const {
        return ranks_->count() + hosts_->count() + placement_->count() > 0 ||
               ranks_per_host_count_ > 0;
    }

    /// Returns whether the costs are to be those of this machine, too.
    bool on_this_machine() const { return this_machine_ || unbound_; }

    /// Returns where the ranks are. Fails if the placement file, or this machine, cannot be read.
    Result<topo::Placement> placement() const;
    /// Returns the question to the ranks of `placement`. `links_known`: whether they know the links
    /// between their hosts.
    Question question(const topo::Placement& placement, bool links_known = false) const;

    graph::Collective collective() const { return question_.collective; }

  private:
    void add_placement_options(CLI::App& app);
    Rank rank_count() const; // 0: as many as the placement file has.
    /// Refuses options that mean nothing to the collective.
    void check_uses() const;
    void check_blocks(Rank ranks) const;

    Question question_;
    Rank hosts_count_ = 1;
    Rank ranks_per_host_count_ = 0;
    Rank sockets_ = 1;
    std::string placement_path_;
    bool ordered_ = false;
    bool this_machine_ = false;
    bool unbound_ = false;
    const CLI::Option* collective_ = nullptr;
    CLI::Option* ranks_ = nullptr;
    const CLI::Option* hosts_ = nullptr;
    const CLI::Option* placement_ = nullptr;
    const CLI::Option* root_ = nullptr;
};

} // namespace ucg::tools
