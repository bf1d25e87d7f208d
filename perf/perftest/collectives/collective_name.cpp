#include "perf/perftest/collectives/collective_name.hpp"

namespace ucg::perftest {

std::optional<CollectiveName> parse_collective_name(std::string_view name) {
    for (const CollectiveShape& shape : collective_shapes()) {
        if (!name.starts_with(shape.name)) {
            continue;
        }
        for (const CollectiveForm form : kCollectiveForms) {
            if (name.substr(shape.name.size()) == suffix_of(form)) {
                return CollectiveName{&shape, form};
            }
        }
    }
    return std::nullopt;
}

} // namespace ucg::perftest
