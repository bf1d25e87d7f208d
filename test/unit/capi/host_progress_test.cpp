// How often a context calls the program's progress function, and for what.
#include <utility>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/context.hpp"

namespace ucg::capi {
namespace {

/// A host to which messages may come without end.
struct Host {
    unsigned messages = 0; ///< What each call for messages finds.
    unsigned for_messages = 0;
    unsigned for_everything = 0;

    static unsigned progress(void* self, unsigned flags) {
        auto& host = *static_cast<Host*>(self);
        if ((flags & UCG_PROGRESS_FLAG_MESSAGES) != 0) {
            ++host.for_messages;
            return host.messages;
        }
        ++host.for_everything;
        return 0;
    }
    ucg_context_params_t params() {
        ucg_context_params_t params = {};
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_PROGRESS;
        params.progress = progress;
        params.progress_arg = this;
        return params;
    }
};

Config config() {
    Result<Config> config = Config::from_environment();
    REQUIRE(config.ok());
    return std::move(*config);
}

TEST_CASE("capi: a wait drives everything of a host that has no messages", "[capi][wait]") {
    Host host;
    const ucg_context_params_t params = host.params();
    Context context(&params, config(), {}, {});
    for (unsigned call = 1; call <= 10; ++call) {
        CHECK(context.host_progress() == 0);
        CHECK(host.for_everything == call);
    }
}

TEST_CASE("capi: messages that keep coming do not keep a wait from everything else of the host",
          "[capi][wait]") {
    Host host{.messages = 3};
    const ucg_context_params_t params = host.params();
    Context context(&params, config(), {}, {});
    for (unsigned call = 1; call <= 80; ++call) {
        CHECK(context.host_progress() == 3);
        CHECK(host.for_messages == call);
        CHECK(host.for_everything == call / 8);
    }
}

} // namespace
} // namespace ucg::capi
