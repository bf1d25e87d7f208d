// UCG_MACHINE: which machine it names, where processes are on that machine, and which message is
// logged when it names none.
#include <array>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "test/support/catch.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/machine_setting.hpp"

namespace ucg::capi {
namespace {

constexpr const char* kTwoByTwoByTwo = "package:2 l3:2 core:2 pu:1";

class File {
  public:
    explicit File(std::string_view text) {
        const int descriptor = ::mkstemp(name_.data());
        REQUIRE(descriptor >= 0);
        REQUIRE(::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ::close(descriptor);
    }
    ~File() { ::unlink(name_.data()); }
    std::string path() const { return name_.data(); }

  private:
    std::array<char, 20> name_ = {"/tmp/ucg_machXXXXXX"};
};

std::string complaint(std::string_view setting) {
    const NamedMachine named = load_machine(setting, 0);
    CHECK(named.hash == 0);
    CHECK(named.machine.core_count() == 0);
    return named.complaint;
}

} // namespace

TEST_CASE("capi: the n-th process of a host is on the n-th core of the machine that is named",
          "[capi][machine]") {
    const NamedMachine named = load_machine(kTwoByTwoByTwo, 3);
    CHECK(named.complaint.empty());
    CHECK(named.hash != 0);
    REQUIRE(named.machine.core_count() == 8);
    const topo::Placement packed = topo::Placement::packed(named.machine, 1, 12);
    for (std::uint32_t process = 0; process < 12; ++process) {
        CHECK(place_of_process(named.machine, process) == packed.place(static_cast<Rank>(process)));
    }
    CHECK(place_of_process(named.machine, 8) == place_of_process(named.machine, 0));
    CHECK(packed.widest_on_host() == topo::Distance::host);
    CHECK(packed.distance(0, 2) != packed.distance(0, 1));
    CHECK(packed.distance(0, 4) != packed.distance(0, 2));
}

TEST_CASE("capi: a machine is named by a description or by a file", "[capi][machine]") {
    const NamedMachine described = load_machine(kTwoByTwoByTwo, 0);
    const File text(topo::to_text(described.machine));
    CHECK(load_machine(text.path(), 0).machine == described.machine);
    CHECK(load_machine(text.path(), 0).hash == described.hash);
    const NamedMachine exported =
        load_machine(UCG_SOURCE_ROOT "/test/unit/topo/two_packages.xml", 0);
    CHECK(exported.complaint.empty());
    CHECK(exported.machine.package_count() == 2);
    CHECK(exported.hash != described.hash);
    CHECK(load_machine("", 0).complaint.empty());
    CHECK(load_machine("", 0).hash == 0);
}

TEST_CASE("capi: who names no machine hears what was expected where", "[capi][machine]") {
    CHECK(complaint("packge:2 pu:1").find("UCG_MACHINE: expected a synthetic description") == 0);
    CHECK(complaint("packge:2 pu:1").find("found \"packge:2 pu:1\"") != std::string::npos);
    CHECK(complaint("/nowhere/machine.xml") ==
          "UCG_MACHINE: /nowhere/machine.xml: cannot read the machine: No such file or directory");
    const File xml("<?xml version=\"1.0\"?><topology>");
    CHECK(complaint(xml.path()).find("UCG_MACHINE: " + xml.path() + ": expected XML") == 0);
    const File nonsense("rank 0: host 0\n");
    CHECK(complaint(nonsense.path()).find("UCG_MACHINE: " + nonsense.path() + ": line 1") == 0);
    CHECK(complaint("/").find("UCG_MACHINE: /: ") == 0);
}

TEST_CASE("capi: a program that does not number its processes has no group on a named machine",
          "[capi][machine]") {
    CHECK(load_machine(kTwoByTwoByTwo, std::nullopt).complaint.find("local_rank") !=
          std::string::npos);
    ::setenv("UCG_MACHINE", kTwoByTwoByTwo, 1);
    ucg_group_params_t params = {};
    params.size = 1;
    params.oob_allgather = [](void*, const void* send, void* receive, std::size_t bytes) {
        std::memcpy(receive, send, bytes);
        return 0;
    };
    ucg_context_params_t told = {};
    told.field_mask = UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK;
    for (const bool tells : {true, false}) {
        ucg_context_h context = nullptr;
        REQUIRE(ucg_context_create(tells ? &told : nullptr, nullptr, &context) == UCG_OK);
        ucg_group_h group = nullptr;
        CHECK(ucg_group_create(context, &params, &group) ==
              (tells ? UCG_OK : UCG_ERR_INVALID_PARAM));
        if (group != nullptr) {
            ucg_group_destroy(group);
        }
        ucg_context_destroy(context);
    }
    ::unsetenv("UCG_MACHINE");
}

} // namespace ucg::capi
