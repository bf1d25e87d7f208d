// How often calls run the program's progress function, and for what.
#include "test/support/catch.hpp"
#include "ucg_coll/capi/host_progress.hpp"

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
};

TEST_CASE("capi: a wait drives everything of a host that has no messages", "[capi][wait]") {
    Host host;
    HostProgress progress(Host::progress, &host);
    for (unsigned call = 1; call <= 10; ++call) {
        CHECK(progress.progress() == 0);
        CHECK(host.for_everything == call);
    }
}

TEST_CASE("capi: messages that keep coming do not keep a wait from everything else of the host",
          "[capi][wait]") {
    Host host{.messages = 3};
    HostProgress progress(Host::progress, &host);
    for (unsigned call = 1; call <= 80; ++call) {
        CHECK(progress.progress() == 3);
        CHECK(host.for_messages == call);
        CHECK(host.for_everything == call / 8);
    }
}

TEST_CASE("capi: the ends of calls drive a host by turns, and look after other groups",
          "[capi][wait]") {
    Host host;
    HostProgress progress(Host::progress, &host);
    unsigned others = 0;
    for (unsigned call = 0; call < 80; ++call) {
        progress.progress_at_end([&] { ++others; });
    }
    CHECK(host.for_messages == 5);
    CHECK(host.for_everything == 5);
    CHECK(others == 10);
    host.messages = 1;
    for (unsigned call = 0; call < 80; ++call) {
        progress.progress_at_end([&] { ++others; });
    }
    CHECK(host.for_messages == 5 + 40);
    CHECK(host.for_everything == 5 + 40);
}

TEST_CASE("capi: without a host there is nothing to drive", "[capi][wait]") {
    HostProgress progress(nullptr, nullptr);
    CHECK(progress.progress() == 0);
    CHECK(progress.messages() == 0);
    progress.progress_at_end([] {});
}

} // namespace
} // namespace ucg::capi
