// Fuzzes the reader of clusters in JSON: see cluster_check.hpp.
#include <cstddef>
#include <cstdint>

#include "test/fuzz/cluster_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ucg::topo::check_cluster(ucg::topo::parse_cluster_json(text));
    return 0;
}
