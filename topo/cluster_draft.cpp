#include "topo/cluster_draft.hpp"

#include <algorithm>
#include <unordered_map>

namespace ucg::topo {

using Kind = ClusterNode::Kind;

namespace {

Status refuse(std::uint64_t line, std::string_view reason) {
    return failure(Code::invalid_argument, "line {}: {}", line, reason);
}

class TreeBuilder {
  public:
    TreeBuilder(std::vector<DraftNode> drafts, Trees trees)
        : drafts_(std::move(drafts)), trees_(trees) {}

    Result<Cluster> run() {
        for (Status (TreeBuilder::*const step)() :
             {&TreeBuilder::check_names, &TreeBuilder::find_parents, &TreeBuilder::find_roots,
              &TreeBuilder::find_order}) {
            if (Status status = (this->*step)(); !status.ok()) {
                return status;
            }
        }
        return Cluster(ordered());
    }

  private:
    Status check_names() {
        // A forest has one more node than drafts.
        const std::size_t most = kClusterNodesMax - (trees_ == Trees::several ? 1 : 0);
        if (drafts_.size() > most) {
            return refuse(drafts_[most].line,
                          fmt::format("more than {} switches and machines", most));
        }
        for (std::uint32_t i = 0; i < drafts_.size(); ++i) {
            const DraftNode& draft = drafts_[i];
            if (!is_cluster_name(draft.name)) {
                return refuse(draft.line,
                              fmt::format("'{}' cannot be the name of a {} (letters, digits, '-', "
                                          "'_' and '.', at most 255)",
                                          draft.name.substr(0, 60), name(draft.kind)));
            }
            if (const auto [first, is_new] = index_.try_emplace(draft.name, i); !is_new) {
                const DraftNode& before = drafts_[first->second];
                return refuse(draft.line, fmt::format("'{}' is a {} of line {} already", draft.name,
                                                      name(before.kind), before.line));
            }
        }
        return {};
    }

    Status find_parents() {
        parents_.assign(drafts_.size(), kNoNode);
        for (std::uint32_t i = 0; i < drafts_.size(); ++i) {
            const DraftNode& draft = drafts_[i];
            if (draft.parent.empty()) {
                continue;
            }
            const auto parent = index_.find(draft.parent);
            if (parent == index_.end()) {
                return refuse(draft.line, fmt::format("'{}' hangs below '{}', which is not defined",
                                                      draft.name, draft.parent.substr(0, 60)));
            }
            if (drafts_[parent->second].kind != Kind::network_switch) {
                return refuse(draft.line, fmt::format("'{}' hangs below '{}', which is a machine",
                                                      draft.name, draft.parent));
            }
            parents_[i] = parent->second;
        }
        return {};
    }

    Status find_roots() {
        bool has_machine = false;
        for (std::uint32_t i = 0; i < drafts_.size(); ++i) {
            has_machine = has_machine || drafts_[i].kind == Kind::machine;
            if (parents_[i] != kNoNode) {
                continue;
            }
            if (drafts_[i].kind == Kind::machine) {
                return refuse(drafts_[i].line,
                              fmt::format("machine '{}' hangs below no switch", drafts_[i].name));
            }
            roots_.push_back(i);
        }
        if (!has_machine) {
            return refuse(drafts_.empty() ? 1 : drafts_.back().line, "there is no machine");
        }
        if (is_forest() && trees_ == Trees::one) {
            const DraftNode& first = drafts_[roots_[0]];
            const DraftNode& second = drafts_[roots_[1]];
            return refuse(second.line,
                          fmt::format("'{}' and '{}' (line {}) have no switch above them: machines "
                                      "below them could not reach one another",
                                      second.name, first.name, first.line));
        }
        return {};
    }

    bool is_forest() const { return roots_.size() > 1; }

    /// Puts each parent before its children. Because each node has at most one parent, every node
    /// that no root reaches lies on a ring or below one.
    Status find_order() {
        std::vector<std::uint32_t> first(drafts_.size(), kNoNode); // A parent's first child ...
        std::vector<std::uint32_t> next(drafts_.size(), kNoNode);  // ... and a node's next sibling.
        for (auto i = static_cast<std::uint32_t>(drafts_.size()); i-- > 0;) {
            if (parents_[i] != kNoNode) {
                next[i] = first[parents_[i]];
                first[parents_[i]] = i;
            }
        }
        position_.assign(drafts_.size(), kNoNode);
        for (const std::uint32_t root : roots_) {
            place(root);
        }
        for (std::size_t done = 0; done < order_.size(); ++done) { // `order_` grows here.
            for (std::uint32_t i = first[order_[done]]; i != kNoNode; i = next[i]) {
                place(i);
            }
        }
        return order_.size() == drafts_.size() ? Status() : refuse_ring();
    }

    void place(std::uint32_t draft) {
        position_[draft] = static_cast<std::uint32_t>(order_.size());
        order_.push_back(draft);
    }

    Status refuse_ring() const {
        const auto lost = std::find(position_.begin(), position_.end(), kNoNode);
        auto member = static_cast<std::uint32_t>(lost - position_.begin());
        std::vector<bool> seen(drafts_.size(), false);
        for (; !seen[member]; member = parents_[member]) {
            seen[member] = true;
        }
        static constexpr int kShown = 10;
        std::string names = drafts_[member].name;
        std::uint64_t line = drafts_[member].line;
        int count = 1;
        for (std::uint32_t i = parents_[member]; i != member; i = parents_[i], ++count) {
            line = std::min(line, drafts_[i].line);
            names += count < kShown ? ", " + drafts_[i].name : count == kShown ? ", ..." : "";
        }
        return refuse(line, fmt::format("the switches form a ring: {}", names));
    }

    /// A node without a name goes before the trees of a forest.
    std::vector<ClusterNode> ordered() {
        std::vector<ClusterNode> nodes;
        const std::uint32_t before = is_forest() ? 1 : 0;
        nodes.reserve(before + order_.size());
        if (is_forest()) {
            nodes.push_back({"", Kind::network_switch, kNoNode, 0});
        }
        const std::uint32_t above_roots = is_forest() ? 0 : kNoNode;
        for (const std::uint32_t i : order_) {
            const std::uint32_t parent =
                parents_[i] == kNoNode ? above_roots : before + position_[parents_[i]];
            nodes.push_back({drafts_[i].name, drafts_[i].kind, parent, drafts_[i].rate});
        }
        return nodes;
    }

    std::vector<DraftNode> drafts_;
    Trees trees_;
    std::unordered_map<std::string_view, std::uint32_t> index_; // The names live in drafts_.
    std::vector<std::uint32_t> parents_;
    std::vector<std::uint32_t> roots_;
    std::vector<std::uint32_t> order_;
    std::vector<std::uint32_t> position_; // By draft: its index in order_.
};

} // namespace

Result<Cluster> build_cluster(std::vector<DraftNode> drafts, Trees trees) {
    return TreeBuilder(std::move(drafts), trees).run();
}

} // namespace ucg::topo
