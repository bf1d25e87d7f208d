#include "test/unit/topo/clusters.hpp"

#include <array>

namespace ucg::topo::test {

ClusterNode network_switch(std::string name, std::uint32_t parent, std::uint64_t rate) {
    return {std::move(name), ClusterNode::Kind::network_switch, parent, rate};
}

ClusterNode machine(std::string name, std::uint32_t parent, std::uint64_t rate) {
    return {std::move(name), ClusterNode::Kind::machine, parent, rate};
}

Cluster figure1(std::uint64_t rate) {
    return Cluster({network_switch("s1", kNoNode), network_switch("s0", 0, rate),
                    network_switch("s3", 0, rate), machine("n0", 1, rate), machine("n1", 1, rate),
                    machine("n2", 1, rate), machine("n3", 2, rate), machine("n4", 2, rate),
                    machine("n5", 0, rate)});
}

Cluster random_cluster(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines) {
    static constexpr std::array<std::uint64_t, 4> kRates = {0, 12'500'000, 125'000'000,
                                                            1'250'000'000};
    std::vector<ClusterNode> nodes = {network_switch("s0", kNoNode)};
    for (std::uint32_t i = 1; i < switches; ++i) {
        nodes.push_back(network_switch("s" + std::to_string(i),
                                       static_cast<std::uint32_t>(random() % i),
                                       kRates[random() % kRates.size()]));
    }
    for (std::uint32_t i = 0; i < machines; ++i) {
        nodes.push_back(machine("n" + std::to_string(i),
                                static_cast<std::uint32_t>(random() % switches),
                                kRates[random() % kRates.size()]));
    }
    return Cluster(std::move(nodes));
}

} // namespace ucg::topo::test
