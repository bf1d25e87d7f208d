// Fuzzes the reader of Slurm's topology.conf: see cluster_check.hpp.
#include <cstddef>
#include <cstdint>

#include "test/fuzz/cluster_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ucg::topo::check_cluster(ucg::topo::parse_slurm_topology(text));
    ucg::topo::check_forest(ucg::topo::parse_slurm_topology(text, 0, ucg::topo::Trees::several),
                            ucg::topo::parse_slurm_topology(text));
    static constexpr std::uint64_t kMegabit = 125'000;
    ucg::topo::check_cluster(ucg::topo::parse_slurm_topology(text, kMegabit));
    return 0;
}
