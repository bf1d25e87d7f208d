// Groups that cannot be made.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "test/support/catch.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/wireup/hello.hpp"

namespace {

using ucg::capi::Hello;

/// The allgather of two ranks that contribute the same, apart from their numbers; memory runs out
/// after so many exchanges.
int gather_until_exhausted(void* left, const void* send, void* receive, std::size_t bytes) {
    if (--*static_cast<int*>(left) < 0) {
        throw std::bad_alloc();
    }
    std::memcpy(receive, send, bytes);
    char* const second = static_cast<char*>(receive) + bytes;
    std::memcpy(second, send, bytes);
    if (bytes == sizeof(Hello)) {
        const std::uint32_t rank = 1;
        std::memcpy(second + offsetof(Hello, rank), &rank, sizeof(rank));
    }
    return 0;
}

int fail(void* /*argument*/, const void* /*send*/, void* /*receive*/, std::size_t /*bytes*/) {
    return 1;
}

ucg_status_t create(ucg_oob_allgather_cb_t allgather, void* argument) {
    ucg_context_h context = nullptr;
    REQUIRE(ucg_context_create(nullptr, nullptr, &context) == UCG_OK);
    ucg_group_params_t params = {};
    params.size = 2;
    params.oob_allgather = allgather;
    params.oob_arg = argument;
    ucg_group_h group = nullptr;
    const ucg_status_t status = ucg_group_create(context, &params, &group);
    CHECK(group == nullptr);
    ucg_context_destroy(context);
    return status;
}

} // namespace

TEST_CASE("a rank that fails alone says so, whenever it fails") {
    for (int exchanges = 0; exchanges < 2; ++exchanges) {
        CAPTURE(exchanges);
        int left = exchanges;
        CHECK(create(gather_until_exhausted, &left) == UCG_ERR_NO_MEMORY);
    }
}

TEST_CASE("a failed exchange is no lack of memory") {
    CHECK(create(fail, nullptr) == UCG_ERR_IO_ERROR);
}
