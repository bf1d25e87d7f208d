#include "tools/ucg_info/huge_pages.hpp"

#include <fstream>
#include <string>

namespace ucg::tools {
namespace {

/// Returns the choice of a setting such as "always [madvise] never"; empty if there is none.
std::string choice(const std::string& setting) {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/" + setting);
    std::string text;
    std::getline(file, text, '[');
    std::getline(file, text, ']');
    return file ? text : "";
}

} // namespace

bool shared_memory_lacks_huge_pages() {
    const std::string ordinary = choice("enabled");
    const std::string shared = choice("shmem_enabled");
    return (ordinary == "always" || ordinary == "madvise") &&
           (shared == "never" || shared == "deny");
}

} // namespace ucg::tools
