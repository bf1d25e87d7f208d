// What a process knows of itself, by what its caller and its settings say.
#include <utility>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/process_facts.hpp"

namespace ucg::capi {
namespace {

struct Known {
    Config config;
    LoadedProfile profile = {};
    ContextParams params = {};
};

Known known(std::string_view machine) {
    Result<Config> config = Config::from_environment();
    REQUIRE(config.ok());
    REQUIRE(config->set("MACHINE", machine).ok());
    REQUIRE(config->set("TOPOLOGY", kNoTopology).ok());
    return {.config = std::move(*config)};
}

TEST_CASE("capi: a process is where UCG_MACHINE has it run", "[capi]") {
    Known what = known("package:2 core:2 pu:1");
    what.params.local_rank = 2;
    ProcessFacts facts(what.config, what.profile, what.params);
    CHECK(facts.machine().machine.core_count() == 4);
    CHECK(&facts.machine() == &facts.machine());
    CHECK(facts.place() == place_of_process(facts.machine().machine, 2));
}

TEST_CASE("capi: the load of a host is what the caller tells, on the CPUs that the job may use",
          "[capi]") {
    Known what = known("");
    CHECK(ProcessFacts(what.config, what.profile, what.params).host_load().ranks == 1);
    what.params.local_processes = 1000;
    const ProcessFacts facts(what.config, what.profile, what.params);
    CHECK(facts.host_load().ranks == 1000);
    CHECK(facts.host_load().cpus == facts.host_cpus());
    CHECK(facts.host_cpus() >= 1);
    CHECK(facts.host_cpus() <= facts.grant().cpus);
}

TEST_CASE("capi: a process that is to know of no switches knows of none", "[capi]") {
    const Known what = known("");
    ProcessFacts facts(what.config, what.profile, what.params);
    CHECK(facts.topology().hash == 0);
    CHECK(facts.machine().hash == 0);
}

} // namespace
} // namespace ucg::capi
