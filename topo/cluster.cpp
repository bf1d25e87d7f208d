#include "topo/cluster.hpp"

#include <algorithm>
#include <numeric>

namespace ucg::topo {

using Kind = ClusterNode::Kind;

std::string_view name(Kind kind) {
    switch (kind) {
    case Kind::network_switch: return "switch";
    case Kind::machine: return "machine";
    }
    return "?";
}

bool is_cluster_name(std::string_view name) {
    static constexpr std::size_t kLengthMax = 255; // The limit of a host name with its domain.
    const auto is_alphanumeric = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    const auto is_inner = [&](char c) {
        return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    };
    return !name.empty() && name.size() <= kLengthMax && name.front() != '-' &&
           name.front() != '.' && std::all_of(name.begin(), name.end(), is_inner);
}

namespace {

/// Children by parent, machines before switches, else in the order of `nodes`: the children of
/// `node` are list[begin[node]] to list[begin[node + 1] - 1].
struct Children {
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> list;
};

Children children_of(const std::vector<ClusterNode>& nodes) {
    Children children;
    children.begin.assign(nodes.size() + 1, 0);
    for (const ClusterNode& node : nodes) {
        if (node.parent != kNoNode) {
            ++children.begin[node.parent + 1];
        }
    }
    std::partial_sum(children.begin.begin(), children.begin.end(), children.begin.begin());
    children.list.resize(children.begin.back());
    std::vector<std::uint32_t> next(children.begin.begin(), children.begin.end() - 1);
    for (const Kind kind : {Kind::machine, Kind::network_switch}) {
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].kind == kind && nodes[i].parent != kNoNode) {
                children.list[next[nodes[i].parent]++] = i;
            }
        }
    }
    return children;
}

void check(const std::vector<ClusterNode>& nodes) {
    UCG_ASSERT(nodes.size() <= kClusterNodesMax);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        UCG_ASSERT(is_cluster_name(nodes[i].name) || (i == 0 && nodes[i].name.empty()));
        UCG_ASSERT(i == 0 ? nodes[i].parent == kNoNode && nodes[i].kind == Kind::network_switch
                          : nodes[i].parent < i &&
                                nodes[nodes[i].parent].kind == Kind::network_switch);
    }
}

std::vector<ClusterNode> depth_first(std::vector<ClusterNode> nodes) {
    check(nodes);
    const Children children = children_of(nodes);
    std::vector<ClusterNode> ordered;
    ordered.reserve(nodes.size());
    // An explicit stack instead of recursion: a chain of switches may be as deep as the tree has
    // nodes.
    struct Pending {
        std::uint32_t node;
        std::uint32_t parent; // Index in `ordered`.
    };
    std::vector<Pending> pending;
    if (!nodes.empty()) {
        pending.push_back({0, kNoNode});
    }
    while (!pending.empty()) {
        const Pending next = pending.back();
        pending.pop_back();
        const auto index = static_cast<std::uint32_t>(ordered.size());
        for (std::uint32_t c = children.begin[next.node + 1]; c-- > children.begin[next.node];) {
            pending.push_back({children.list[c], index});
        }
        ordered.push_back(std::move(nodes[next.node]));
        ordered.back().parent = next.parent;
    }
    if (!ordered.empty()) {
        ordered.front().rate = 0;
    }
    return ordered;
}

std::string_view up_to_dot(std::string_view name) {
    return name.substr(0, name.find('.'));
}

} // namespace

Cluster::Cluster(std::vector<ClusterNode> nodes) : nodes_(depth_first(std::move(nodes))) {
    number_subtrees();
    index_names();
}

void Cluster::number_subtrees() {
    subtree_end_.resize(nodes_.size());
    std::iota(subtree_end_.begin(), subtree_end_.end(), 1U);
    for (std::uint32_t i = node_count(); i-- > 1;) {
        std::uint32_t& end = subtree_end_[nodes_[i].parent];
        end = std::max(end, subtree_end_[i]);
    }
    machines_before_.assign(nodes_.size() + 1, 0);
    for (std::uint32_t i = 0; i < node_count(); ++i) {
        machines_before_[i + 1] = machines_before_[i] + (is_machine(i) ? 1 : 0);
        if (is_machine(i)) {
            machine_node_.push_back(i);
        }
    }
}

void Cluster::index_names() {
    const auto name_of = [this](std::uint32_t node) -> std::string_view {
        return nodes_[node].name;
    };
    by_name_.resize(nodes_.size());
    std::iota(by_name_.begin(), by_name_.end(), 0U);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return name_of(a) < name_of(b); });
    UCG_ASSERT(
        std::adjacent_find(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return name_of(a) == name_of(b);
        }) == by_name_.end());
}

std::uint32_t Cluster::tree_of_machine(std::uint32_t machine) const {
    std::uint32_t node = machine_node_[machine];
    while (nodes_[node].parent != 0) {
        node = nodes_[node].parent;
    }
    return node;
}

std::vector<std::uint32_t> Cluster::children(std::uint32_t node) const {
    std::vector<std::uint32_t> children;
    for (std::uint32_t child = node + 1; child < subtree_end_[node]; child = subtree_end_[child]) {
        children.push_back(child);
    }
    return children;
}

std::optional<std::uint32_t> Cluster::find(std::string_view name) const {
    const auto at = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [this](std::uint32_t node, std::string_view wanted) { return nodes_[node].name < wanted; });
    if (at == by_name_.end() || nodes_[*at].name != name) {
        return std::nullopt;
    }
    return *at;
}

std::optional<std::uint32_t> Cluster::find_machine(std::string_view host_name) const {
    const auto number = [this](std::uint32_t node) { return machines_before_[node]; };
    if (const auto exact = find(host_name); exact && is_machine(*exact)) {
        return number(*exact);
    }
    const std::string_view wanted = up_to_dot(host_name);
    std::optional<std::uint32_t> found;
    for (const std::uint32_t node : machine_node_) {
        const std::string& name = nodes_[node].name;
        // Two different names that both have a domain are those of two hosts.
        const bool both_full = name.find('.') != std::string::npos && wanted != host_name;
        if (up_to_dot(name) == wanted && !both_full) {
            if (found) {
                return std::nullopt;
            }
            found = number(node);
        }
    }
    return found;
}

Cluster Cluster::pruned(std::span<const std::uint32_t> machines) const {
    std::vector<bool> kept(nodes_.size(), false);
    for (const std::uint32_t machine : machines) {
        kept[machine_node_[machine]] = true;
    }
    std::vector<std::uint32_t> kept_children(nodes_.size(), 0);
    for (std::uint32_t i = node_count(); i-- > 1;) {
        if (kept[i]) {
            kept[nodes_[i].parent] = true;
            ++kept_children[nodes_[i].parent];
        }
    }
    if (machines.empty()) {
        return {};
    }
    std::uint32_t top = 0;
    while (kept_children[top] == 1) {
        std::uint32_t child = top + 1;
        while (!kept[child]) {
            child = subtree_end_[child];
        }
        if (is_machine(child)) {
            break;
        }
        top = child;
    }
    std::vector<ClusterNode> left;
    std::vector<std::uint32_t> moved(nodes_.size(), kNoNode);
    for (std::uint32_t i = top; i < subtree_end_[top]; ++i) {
        if (kept[i]) {
            moved[i] = static_cast<std::uint32_t>(left.size());
            left.push_back(nodes_[i]);
            left.back().parent = i == top ? kNoNode : moved[nodes_[i].parent];
        }
    }
    return Cluster(std::move(left));
}

std::uint64_t Cluster::hash() const {
    Hash hash;
    hash.value(nodes_.size());
    for (const ClusterNode& node : nodes_) {
        hash.value(node.name.size()).bytes(node.name);
        hash.value(node.kind).value(node.parent).value(node.rate);
    }
    return hash.digest();
}

} // namespace ucg::topo
