// Names of collective tests: a collective and the form in which it is called.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "perf/perftest/collectives/collective_shape.hpp"

namespace ucg::perftest {

enum class CollectiveForm {
    blocking,    ///< ucg_coll_run()
    nonblocking, ///< Prepared, started, tested until done and freed each time.
    persistent,  ///< Prepared once, then started and awaited each time.
};
inline constexpr std::array<CollectiveForm, 3> kCollectiveForms = {
    CollectiveForm::blocking, CollectiveForm::nonblocking, CollectiveForm::persistent};

/// Returns the suffix that a form adds to the collective's name.
constexpr std::string_view suffix_of(CollectiveForm form) {
    switch (form) {
    case CollectiveForm::blocking: return "";
    case CollectiveForm::nonblocking: return "_nonblocking";
    case CollectiveForm::persistent: break;
    }
    return "_persistent";
}

struct CollectiveName {
    const CollectiveShape* shape = nullptr;
    CollectiveForm form = CollectiveForm::blocking;
};

/// Parses a test's name such as "allreduce_persistent"; returns no value if it is none.
std::optional<CollectiveName> parse_collective_name(std::string_view name);

} // namespace ucg::perftest
