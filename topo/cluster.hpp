// A cluster: the network between hosts, as a tree of switches and machines. It is a plain value,
// read from a file that clusters have (cluster_slurm.hpp, cluster_json.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

/// The index that stands for "no node", as the parent of the root.
inline constexpr std::uint32_t kNoNode = UINT32_MAX;

/// The most nodes that a Cluster may have; a file with more has a mistake.
inline constexpr std::size_t kClusterNodesMax = std::size_t{1} << 21;

/// Whether a file may describe several trees of switches that nothing connects. A job mostly lies
/// in one of them; what needs one tree of all machines takes no such file.
enum class Trees : std::uint8_t { one, several };

/// A switch or a machine, with its link to the switch above it.
struct ClusterNode {
    enum class Kind : std::uint8_t { network_switch, machine };

    std::string name;
    Kind kind = Kind::machine;
    std::uint32_t parent = kNoNode; ///< The index of the switch above; kNoNode for the root.
    /// Rate of the link to the parent, in bytes per second for each of its two directions (links
    /// are full duplex). 0: unknown, or the root, which has no such link.
    std::uint64_t rate = 0;

    bool operator==(const ClusterNode&) const = default;
};
std::string_view name(ClusterNode::Kind kind);

/// A tree of switches with machines as leaves. Nodes are in depth-first order, below each switch
/// its machines first and then its switches, so that
///
///   * node 0 is the root, a switch, and a parent comes before its children;
///   * the subtree of `node` is the nodes [node, subtree_end(node));
///   * the machines of a subtree, numbered in order of their nodes, are a range of numbers too.
///
/// Names are unique. The name of the root may be empty: then it is no switch, but stands above
/// several trees that nothing connects (is_forest()). A parameter `node` is an index among all
/// nodes; `machine` is a machine's number among the machines.
class Cluster {
  public:
    /// A half-open range [begin, end) of machine numbers.
    struct MachineRange {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;

        std::uint32_t size() const { return end - begin; }
        bool contains(std::uint32_t machine) const { return begin <= machine && machine < end; }
        bool operator==(const MachineRange&) const = default;
    };

    /// Makes an empty cluster, without any node.
    Cluster() = default;
    /// Makes a cluster of `nodes`. Children of a switch keep their order among those of their kind;
    /// indexes change if `nodes` is not yet in the order above. REQUIRES: the first node alone has
    /// no parent, and is a switch; parents are switches and come before their children; names are
    /// unique and is_cluster_name(), but for an empty one of the first node; at most
    /// kClusterNodesMax nodes. Takes O(n log n) time.
    explicit Cluster(std::vector<ClusterNode> nodes);

    bool empty() const { return nodes_.empty(); }
    /// Returns whether nothing connects the trees below the root.
    bool is_forest() const { return !empty() && nodes_.front().name.empty(); }
    /// Returns how many switches there are.
    std::uint32_t switch_count() const {
        return node_count() - machine_count() - (is_forest() ? 1 : 0);
    }
    const std::vector<ClusterNode>& nodes() const { return nodes_; }
    std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
    /// REQUIRES: node < node_count(), as for all functions below that take a node.
    const ClusterNode& node(std::uint32_t node) const { return nodes_[node]; }
    bool is_machine(std::uint32_t node) const {
        return nodes_[node].kind == ClusterNode::Kind::machine;
    }
    /// Returns the index after the last node of the subtree of `node`.
    std::uint32_t subtree_end(std::uint32_t node) const { return subtree_end_[node]; }
    /// Returns the children of `node`, in order.
    std::vector<std::uint32_t> children(std::uint32_t node) const;

    std::uint32_t machine_count() const { return static_cast<std::uint32_t>(machine_node_.size()); }
    /// REQUIRES: machine < machine_count().
    std::uint32_t node_of_machine(std::uint32_t machine) const { return machine_node_[machine]; }
    const std::string& machine_name(std::uint32_t machine) const {
        return nodes_[machine_node_[machine]].name;
    }
    /// Returns the child of the root in whose subtree the machine is.
    std::uint32_t tree_of_machine(std::uint32_t machine) const;
    /// Returns the machines in the subtree of `node`; for a machine, that machine alone.
    MachineRange machines_below(std::uint32_t node) const {
        return {machines_before_[node], machines_before_[subtree_end_[node]]};
    }

    /// Returns the node of this name, or nothing if there is none, in logarithmic time.
    std::optional<std::uint32_t> find(std::string_view name) const;
    /// Returns the number of the machine of this name; failing that, of the one whose name is equal
    /// up to the first dot of either, if there is only one: hosts call themselves "n1" or
    /// "n1.example.org", and files do not always agree.
    std::optional<std::uint32_t> find_machine(std::string_view host_name) const;

    /// Returns the part of the tree that joins the given machines: without other machines, without
    /// switches that have no machine left, and without the switches above the lowest one through
    /// which all traffic between the machines can go. Machines may be given in any order and more
    /// than once. REQUIRES: each < machine_count().
    Cluster pruned(std::span<const std::uint32_t> machines) const;

    /// Returns a hash (FNV-1a) of all nodes, which is the same on every rank and in every build.
    std::uint64_t hash() const;

    bool operator==(const Cluster& other) const { return nodes_ == other.nodes_; }

  private:
    void number_subtrees();
    void index_names();

    std::vector<ClusterNode> nodes_;
    std::vector<std::uint32_t> subtree_end_;
    std::vector<std::uint32_t> machines_before_; // node_count() + 1 entries.
    std::vector<std::uint32_t> machine_node_;
    std::vector<std::uint32_t> by_name_; // Nodes in the order of their names.
};

/// Can a node have this name? A name has at most 255 letters, digits, '-', '_' and '.', and begins
/// with a letter, a digit or '_'.
bool is_cluster_name(std::string_view name);

} // namespace ucg::topo
