// Makes a Machine by hwloc. This is the only file that uses hwloc.
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>

#include <hwloc.h>

#include "topo/machine.hpp"

namespace ucg::topo {

namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology new_topology() {
    hwloc_topology_t raw = nullptr;
    const int status = hwloc_topology_init(&raw);
    return {status == 0 ? raw : nullptr, &hwloc_topology_destroy};
}

// Numbers keys from 0 in the order in which they are first asked for.
class Numbering {
  public:
    std::uint32_t operator()(std::uint64_t key) {
        return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }

  private:
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

hwloc_obj_t ancestor(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t object) {
    return hwloc_get_ancestor_obj_by_type(topology, type, object);
}

// Returns the outermost data cache above `object`, null if there is none. Machines without an L3,
// and the cores of hybrid processors that bypass it, have another last level.
hwloc_obj_t last_level_cache(hwloc_obj_t object) {
    hwloc_obj_t outermost = nullptr;
    for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
        if (hwloc_obj_type_is_dcache(above->type) != 0) {
            outermost = above;
        }
    }
    return outermost;
}

// Returns the NUMA node with the fewest CPUs among those local to `object` (a core may have its
// own, a high-bandwidth one and the machine's expansion memory); null where there is no memory.
// Ties go to the lower number, which is ordinary memory.
hwloc_obj_t nearest_numa(hwloc_topology_t topology, hwloc_obj_t object) {
    hwloc_obj_t nearest = nullptr;
    int fewest = std::numeric_limits<int>::max();
    for (hwloc_obj_t node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, nullptr);
         node != nullptr; node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) {
        const int cpus = hwloc_bitmap_weight(node->cpuset);
        if (hwloc_bitmap_isset(object->nodeset, node->os_index) != 0 && cpus < fewest) {
            nearest = node;
            fewest = cpus;
        }
    }
    return nearest;
}

std::vector<std::uint32_t> threads_of(hwloc_obj_t core) {
    std::vector<std::uint32_t> threads;
    for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
        threads.push_back(static_cast<std::uint32_t>(cpu));
    }
    return threads;
}

std::uint64_t cache_bytes(hwloc_obj_t cache) {
    return cache != nullptr ? cache->attr->cache.size : 0;
}

// Reads cores from a loaded topology. Without a package object the package is the whole machine,
// without a NUMA node the NUMA domain is the package, and without a cache cores share none.
class CoreReader {
  public:
    explicit CoreReader(hwloc_topology_t topology) : topology_(topology) {}

    Core read(hwloc_obj_t object) {
        const auto key = [](hwloc_obj_t found, hwloc_obj_t otherwise) {
            return (found != nullptr ? found : otherwise)->gp_index;
        };
        const hwloc_obj_t package = ancestor(topology_, HWLOC_OBJ_PACKAGE, object);
        const hwloc_obj_t numa = nearest_numa(topology_, object);
        const hwloc_obj_t root = hwloc_get_root_obj(topology_);
        const hwloc_obj_t outer_numa = numa != nullptr ? numa : package != nullptr ? package : root;
        const hwloc_obj_t l2 = ancestor(topology_, HWLOC_OBJ_L2CACHE, object);
        Core core;
        core.package = packages_(key(package, root));
        core.numa = numas_(outer_numa->gp_index);
        core.l3 = last_levels_(key(last_level_cache(object), object));
        core.l2 = l2s_(key(l2, object));
        core.threads = threads_of(object);
        return core;
    }

  private:
    hwloc_topology_t topology_;
    Numbering packages_;
    Numbering numas_;
    Numbering last_levels_;
    Numbering l2s_;
};

Machine read_machine(hwloc_topology_t topology) {
    // A description may end at hardware threads without naming cores.
    const bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
    const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    CoreReader reader(topology);
    std::vector<Core> cores;
    for (hwloc_obj_t object = hwloc_get_next_obj_by_type(topology, type, nullptr);
         object != nullptr; object = hwloc_get_next_obj_by_type(topology, type, object)) {
        cores.push_back(reader.read(object));
    }
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology, type, 0);
    MemorySizes sizes;
    sizes.l2_bytes = cache_bytes(ancestor(topology, HWLOC_OBJ_L2CACHE, first));
    sizes.l3_bytes = cache_bytes(last_level_cache(first));
    sizes.memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    return Machine(std::move(cores), sizes);
}

// Returns the flags by which hwloc sees the whole machine: processes whose cgroups show them
// different CPUs must still number cores alike. The binding is left alone, because a discovery that
// hops over the CPUs would disturb a running program.
unsigned long whole_machine_flags() {
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    return flags;
}

Result<Machine> load(const Topology& topology, Code code, std::string_view source) {
    if (hwloc_topology_set_flags(topology.get(), whole_machine_flags()) != 0 ||
        hwloc_topology_load(topology.get()) != 0) {
        return failure(code, "hwloc cannot load {}: {}", source, std::strerror(errno));
    }
    return read_machine(topology.get());
}

Status out_of_memory() {
    return {Code::out_of_memory, "hwloc cannot make a topology"};
}

} // namespace

Result<Machine> discover_machine() {
    const Topology topology = new_topology();
    if (topology == nullptr) {
        return out_of_memory();
    }
    Result<Machine> machine = load(topology, Code::io_error, "the topology of this machine");
    if (!machine) {
        log(LogLevel::warn, "{}", machine.status().message());
    }
    return machine;
}

Result<Machine> machine_from_synthetic(const std::string& description) {
    const Topology topology = new_topology();
    if (topology == nullptr) {
        return out_of_memory();
    }
    if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0) {
        return failure(Code::invalid_argument,
                       "expected a synthetic description such as \"package:2 numa:1 l3:2 core:4 "
                       "pu:1\", with pu last, found \"{}\" (HWLOC_SYNTHETIC_VERBOSE=1 tells more)",
                       description);
    }
    return load(topology, Code::invalid_argument, "the synthetic description");
}

Result<Machine> machine_from_xml(const std::string& xml) {
    const Topology topology = new_topology();
    if (topology == nullptr) {
        return out_of_memory();
    }
    const bool too_long = xml.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max());
    // hwloc wants the length including the terminating null.
    if (too_long || hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(),
                                                 static_cast<int>(xml.size()) + 1) != 0) {
        return failure(Code::invalid_argument,
                       "expected XML as \"lstopo --of xml\" writes it, found {} bytes that hwloc "
                       "does not take (HWLOC_XML_VERBOSE=1 tells more)",
                       xml.size());
    }
    return load(topology, Code::invalid_argument, "the XML (HWLOC_XML_VERBOSE=1 tells more)");
}

} // namespace ucg::topo
