// Who is told of the ends of collectives, in which order, and what may be done with them then.
#include <array>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/completions.hpp"
#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {
namespace {

using Ended = std::array<ucg_request, 3>;

/// Makes collectives that were posted and have ended.
void end(Ended& colls, CompletionQueue& ends, ucg_coll_cb_t callback, void* user_data) {
    for (ucg_request& coll : colls) {
        coll.state = HandleState::posted;
        coll.completion = {.user_data = user_data, .callback = callback, .coll = &coll};
        ends.add(coll.completion);
    }
}

TEST_CASE("capi: ends without a callback are told in their order to who polls", "[capi]") {
    Completions completions(true);
    CHECK(completions.take() == nullptr);
    Ended colls;
    CompletionQueue ends;
    end(colls, ends, nullptr, nullptr);
    colls[1].completion.status = UCG_ERR_IO_ERROR;
    completions.add(ends);
    CHECK(ends.empty());
    CHECK(completions.call_back() == 0);
    for (ucg_request& coll : colls) {
        Completion* const ended = completions.take();
        REQUIRE(ended == &coll.completion);
        CHECK(coll.is(HandleState::posted)); // Nobody may start it yet.
        CHECK(tell(*ended) == (&coll == &colls[1] ? UCG_ERR_IO_ERROR : UCG_OK));
        CHECK(coll.is(HandleState::held));
    }
    CHECK(completions.take() == nullptr);
}

/// What a callback was told. The second one starts another end, as a program may.
struct Told {
    Completions& completions;
    std::vector<ucg_coll_h> colls;
    ucg_request next;

    static void tell(void* self, ucg_coll_h coll, ucg_status_t status) {
        auto& told = *static_cast<Told*>(self);
        CHECK(status == UCG_OK);
        CHECK(coll->is(HandleState::held));
        told.colls.push_back(coll);
        if (told.colls.size() == 2) {
            CompletionQueue ends;
            told.next.state = HandleState::posted;
            told.next.completion = {.user_data = self, .callback = tell, .coll = &told.next};
            ends.add(told.next.completion);
            told.completions.add(ends); // It holds no lock of the queue's.
        }
    }
};

TEST_CASE("capi: callbacks are called once each, also for ends that come meanwhile", "[capi]") {
    Completions completions(true);
    Told told{.completions = completions, .colls = {}, .next = {}};
    Ended colls;
    CompletionQueue ends;
    end(colls, ends, Told::tell, &told);
    completions.add(ends);
    CHECK(completions.take() == nullptr);
    CHECK(completions.call_back() == 4);
    CHECK(told.colls == std::vector<ucg_coll_h>{&colls[0], &colls[1], &colls[2], &told.next});
    CHECK(completions.call_back() == 0);
}

} // namespace
} // namespace ucg::capi
