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
    explicit TreeBuilder(std::vector<DraftNode> drafts) : drafts_(std::move(drafts)) {}

    Result<Cluster> run() {
        for (Status (TreeBuilder::*const step)() :
             {&TreeBuilder::check_names, &TreeBuilder::find_parents, &TreeBuilder::find_root,
              &TreeBuilder::find_order}) {
            if (Status status = (this->*step)(); !status.ok()) {
                return status;
            }
        }
        return Cluster(ordered());
    }

  private:
    Status check_names() {
        if (drafts_.size() > kClusterNodesMax) {
            return refuse(drafts_[kClusterNodesMax].line,
                          fmt::format("more than {} switches and machines", kClusterNodesMax));
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

    Status find_root() {
        std::vector<std::uint32_t> roots;
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
            roots.push_back(i);
        }
        if (!has_machine) {
            return refuse(drafts_.empty() ? 1 : drafts_.back().line, "there is no machine");
        }
        if (roots.size() > 1) {
            return refuse(drafts_[roots[1]].line,
                          fmt::format("'{}' and '{}' (line {}) have no switch above them: machines "
                                      "below them could not reach one another",
                                      drafts_[roots[1]].name, drafts_[roots[0]].name,
                                      drafts_[roots[0]].line));
        }
        root_ = roots.empty() ? kNoNode : roots.front();
        return {};
    }

    /// Puts each parent before its children. Because each node has at most one parent, every node
    /// that the root does not reach lies on a ring or below one.
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
        if (root_ != kNoNode) {
            place(root_);
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

    std::vector<ClusterNode> ordered() {
        std::vector<ClusterNode> nodes;
        nodes.reserve(order_.size());
        for (const std::uint32_t i : order_) {
            const std::uint32_t parent = parents_[i] == kNoNode ? kNoNode : position_[parents_[i]];
            nodes.push_back({drafts_[i].name, drafts_[i].kind, parent, drafts_[i].rate});
        }
        return nodes;
    }

    std::vector<DraftNode> drafts_;
    std::unordered_map<std::string_view, std::uint32_t> index_; // The names live in drafts_.
    std::vector<std::uint32_t> parents_;
    std::uint32_t root_ = kNoNode;
    std::vector<std::uint32_t> order_;
    std::vector<std::uint32_t> position_; // By draft: its index in order_.
};

} // namespace

Result<Cluster> build_cluster(std::vector<DraftNode> drafts) {
    return TreeBuilder(std::move(drafts)).run();
}

} // namespace ucg::topo
