#include "test/support/catch.hpp"
#include "topo/draw.hpp"

using namespace ucg;
using namespace ucg::topo;

namespace {

Machine synthetic(const std::string& description) {
    Result<Machine> machine = machine_from_synthetic(description);
    REQUIRE(machine.ok());
    return std::move(machine).value();
}

} // namespace

TEST_CASE("topo: the outline of a machine", "[topo][draw]") {
    const Machine machine({{.package = 0, .l3 = 0, .l2 = 0, .threads = {0, 3}},
                           {.package = 0, .l3 = 0, .l2 = 1, .threads = {1, 4}},
                           {.package = 1, .numa = 1, .l3 = 1, .l2 = 2, .threads = {2, 5}}},
                          {.l3_bytes = 1536 << 10, .memory_bytes = 3ULL << 30});
    CHECK(to_outline(machine) ==
          "Machine: 2 packages, 2 NUMA domains, 2 last-level caches, 3 cores, 6 CPUs, 3 GiB "
          "memory on NUMA nodes\n"
          "  Package 0\n"
          "    NUMA 0\n"
          "      Cache 0 (1.5 MiB): cores 0-1, CPUs 0-1,3-4\n"
          "  Package 1\n"
          "    NUMA 1\n"
          "      Cache 1 (1.5 MiB): core 2, CPUs 2,5\n");
    CHECK(to_outline(Machine()) ==
          "Machine: 0 packages, 0 NUMA domains, 0 last-level caches, 0 cores, 0 CPUs\n");
}

TEST_CASE("topo: an outline shows L2 caches that cores share", "[topo][draw]") {
    const std::string text = to_outline(synthetic("package:1 numa:1 l3:1 l2:2 core:2 pu:1"));
    CHECK(text.find("        L2 1 (4 MiB): cores 2-3, CPUs 2-3\n") != std::string::npos);
}

TEST_CASE("topo: the outline of a placement", "[topo][draw]") {
    const Placement placement({{0, 1, 1, 2, 3},
                               {0, 1, 1, 2, 3},
                               {1, 1, 0, 0, 0, Distance::package},
                               {1, 0, 0, 0, 0, Distance::host}});
    CHECK(to_outline(placement) == "From each rank to the next: 1 core, 1 host, 1 network\n"
                                   "Placement: 4 ranks on 2 hosts\n"
                                   "  Host 0\n"
                                   "    Package 1\n"
                                   "      NUMA 1\n"
                                   "        Cache 2\n"
                                   "          Core 3: ranks 0-1\n"
                                   "  Host 1: rank 3\n"
                                   "    Package 1: rank 2\n");
    CHECK(to_outline(Placement()) == "Placement: 0 ranks on 0 hosts\n");
}

TEST_CASE("topo: the picture of a placement", "[topo][draw]") {
    CHECK(to_dot(Placement::regular(2, 3)) ==
          R"(digraph placement {
  node [shape=plain, fontname="Helvetica"];
  placement [label=<
    <TABLE BORDER="1" CELLBORDER="0" STYLE="ROUNDED">
    <TR><TD COLSPAN="2">Placement: 6 ranks on 2 hosts</TD></TR>
    <TR><TD>
      <TABLE BORDER="1" CELLBORDER="0"><TR><TD>Host 0<BR/>ranks 0-2</TD></TR></TABLE>
    </TD>
    <TD>
      <TABLE BORDER="1" CELLBORDER="0"><TR><TD>Host 1<BR/>ranks 3-5</TD></TR></TABLE>
    </TD></TR>
    </TABLE>
  >];
}
)");
}

TEST_CASE("topo: the picture of a machine names every core once", "[topo][draw]") {
    const std::string dot = to_dot(synthetic("package:2 numa:1 l3:2 core:3 pu:2"));
    for (int core = 0; core < 12; ++core) {
        const std::string box = "Core " + std::to_string(core) + "<BR/>";
        const std::size_t first = dot.find(box);
        CHECK(first != std::string::npos);
        CHECK(dot.find(box, first + 1) == std::string::npos);
    }
}

TEST_CASE("topo: sizes for people", "[topo][draw]") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1024) == "1 KiB");
    CHECK(format_bytes(3ULL << 29) == "1.5 GiB");
    CHECK(format_bytes(~0ULL) == "16384 PiB");
}
