#include "topo/cluster_file.hpp"

namespace ucg::topo {

Result<Cluster> parse_cluster(std::string_view text, std::uint64_t bare_unit, Trees trees) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string_view::npos && text[first] == '{';
    return is_json ? parse_cluster_json(text, trees) : parse_slurm_topology(text, bare_unit, trees);
}

} // namespace ucg::topo
