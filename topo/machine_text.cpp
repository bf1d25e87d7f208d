// The text form of Machine.
#include <iterator>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "topo/machine.hpp"
#include "topo/scanner.hpp"

namespace ucg::topo {

namespace {

// More cores than any host has. The limit keeps a wrong count from reserving memory without end.
constexpr std::uint32_t kCoresMax = 1U << 20;

struct Header {
    std::uint32_t core_count = 0;
    MemorySizes sizes;
};

Header parse_header(Scanner& scanner) {
    static constexpr std::uint64_t kBytesMax = std::numeric_limits<std::uint64_t>::max();
    Header header;
    scanner.expect("machine");
    scanner.expect("cores");
    header.core_count = scanner.number32("a count of cores", kCoresMax);
    scanner.expect("l2_bytes");
    header.sizes.l2_bytes = scanner.number("a number of bytes", kBytesMax);
    scanner.expect("l3_bytes");
    header.sizes.l3_bytes = scanner.number("a number of bytes", kBytesMax);
    scanner.expect("memory_bytes");
    header.sizes.memory_bytes = scanner.number("a number of bytes", kBytesMax);
    scanner.end_of_line();
    return header;
}

std::vector<std::uint32_t> parse_threads(Scanner& scanner) {
    std::vector<std::uint32_t> threads;
    if (scanner.accept("none")) {
        return threads;
    }
    do {
        threads.push_back(scanner.number32("a CPU's number"));
    } while (scanner.accept(","));
    return threads;
}

Core parse_core(Scanner& scanner, std::uint32_t number, std::uint32_t core_count) {
    Core core;
    scanner.expect("core");
    const std::uint32_t found = scanner.number32("a core's number");
    if (found != number) {
        scanner.fail(fmt::format("expected core {}, found core {}", number, found));
    }
    scanner.expect(":");
    scanner.expect("package");
    core.package = scanner.number32("a package's number", core_count - 1);
    scanner.expect("numa");
    core.numa = scanner.number32("a NUMA domain's number", core_count - 1);
    scanner.expect("l3");
    core.l3 = scanner.number32("a last-level cache's number", core_count - 1);
    scanner.expect("l2");
    core.l2 = scanner.number32("an L2 cache's number", core_count - 1);
    scanner.expect("threads");
    core.threads = parse_threads(scanner);
    scanner.end_of_line();
    return core;
}

// Fails if a CPU of `core` already belongs to another core: a CPU is a thread of one core.
void expect_unused(Scanner& scanner, const Core& core, std::uint32_t number,
                   std::unordered_map<std::uint32_t, std::uint32_t>& core_of) {
    for (const std::uint32_t cpu : core.threads) {
        const auto [entry, added] = core_of.try_emplace(cpu, number);
        if (!added) {
            scanner.fail(
                fmt::format("expected a CPU of core {} alone, found CPU {}, which core {} has",
                            number, cpu, entry->second));
        }
    }
}

} // namespace

std::string to_text(const Machine& machine) {
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "machine cores {} l2_bytes {} l3_bytes {} memory_bytes {}\n",
                   machine.core_count(), machine.l2_bytes(), machine.l3_bytes(),
                   machine.memory_bytes());
    for (std::uint32_t i = 0; i < machine.core_count(); ++i) {
        const Core& core = machine.cores()[i];
        fmt::format_to(out, "core {}: package {} numa {} l3 {} l2 {} threads", i, core.package,
                       core.numa, core.l3, core.l2);
        char separator = ' ';
        for (const std::uint32_t cpu : core.threads) {
            fmt::format_to(out, "{}{}", separator, cpu);
            separator = ',';
        }
        fmt::format_to(out, "{}\n", core.threads.empty() ? " none" : "");
    }
    return fmt::to_string(text);
}

Result<Machine> parse_machine(std::string_view text) {
    Scanner scanner(text);
    if (!scanner.next_line()) {
        return failure(Code::invalid_argument,
                       "line 1, column 1: expected \"machine\", found nothing");
    }
    const Header header = parse_header(scanner);
    std::vector<Core> cores;
    std::unordered_map<std::uint32_t, std::uint32_t> core_of;
    while (cores.size() < header.core_count && scanner.next_line()) {
        const auto number = static_cast<std::uint32_t>(cores.size());
        cores.push_back(parse_core(scanner, number, header.core_count));
        expect_unused(scanner, cores.back(), number, core_of);
    }
    if (scanner.next_line()) {
        scanner.fail(fmt::format("expected the end of the text after {} cores, found another line",
                                 header.core_count));
    }
    if (!scanner.ok()) {
        return scanner.status();
    }
    if (cores.size() < header.core_count) {
        return failure(Code::invalid_argument,
                       "expected {} cores, found the end of the text after {}", header.core_count,
                       cores.size());
    }
    return Machine(std::move(cores), header.sizes);
}

} // namespace ucg::topo
