// Elements whose places in memory only the program knows: every collective, in every form, with
// layouts on either side, against the same calls of dense elements.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "test/ranks/capi_cases.hpp"
#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::CollectiveCase;
using ucg::test::run_shm_group;
using ucg::test::ThreadRank;

constexpr std::size_t kStride = 3; // In words: one element and what must not change.
constexpr std::uint64_t kWord = sizeof(std::int64_t);
constexpr std::int64_t kGap = 0x5A5A5A5A;

enum class Form { blocking, waited_for, tested, polled, called_back, at_once, repeated, restarted };
constexpr Form kForms[] = {Form::blocking,    Form::waited_for, Form::tested,   Form::polled,
                           Form::called_back, Form::at_once,    Form::repeated, Form::restarted};

/// One side's memory, and how often its layout's functions were called.
struct Strided {
    std::vector<std::int64_t> words;
    ucg_layout_t layout = {};
    /// The calls fail from this one of the next calls on; 0: none fails.
    std::size_t failing_calls = 0;
    ucg_status_t failure = UCG_ERR_IO_ERROR;
    std::size_t calls = 0;
    std::uint64_t packed_bytes = 0; ///< Of all calls of pack.

    explicit Strided(const std::vector<std::int64_t>& dense) : words(dense.size() * kStride, kGap) {
        for (std::size_t i = 0; i < dense.size(); ++i) {
            words[i * kStride] = dense[i];
        }
        layout.extent = kStride * sizeof(std::int64_t);
        layout.pack = pack;
        layout.unpack = unpack;
        layout.layout_arg = this;
    }
    Strided(const Strided&) = delete;
    Strided& operator=(const Strided&) = delete;

    std::vector<std::int64_t> dense() const {
        std::vector<std::int64_t> values;
        for (std::size_t i = 0; i < words.size(); i += kStride) {
            values.push_back(words[i]);
        }
        return values;
    }
    bool gaps_intact() const {
        bool intact = true;
        for (std::size_t i = 0; i < words.size(); ++i) {
            intact = intact && (i % kStride == 0 || words[i] == kGap);
        }
        return intact;
    }

    ucg_status_t next_call() {
        ++calls;
        return failing_calls != 0 && calls >= failing_calls ? failure : UCG_OK;
    }
    static ucg_status_t pack(void* self, const void* buffer, std::uint64_t offset, void* piece,
                             std::uint64_t bytes) {
        const auto* from = static_cast<const std::byte*>(buffer);
        for (std::uint64_t i = 0; i < bytes; i += kWord) {
            std::memcpy(static_cast<std::byte*>(piece) + i, from + place(offset + i), kWord);
        }
        static_cast<Strided*>(self)->packed_bytes += bytes;
        return static_cast<Strided*>(self)->next_call();
    }
    static ucg_status_t unpack(void* self, void* buffer, std::uint64_t offset, const void* piece,
                               std::uint64_t bytes) {
        auto* to = static_cast<std::byte*>(buffer);
        for (std::uint64_t i = 0; i < bytes; i += kWord) {
            std::memcpy(to + place(offset + i), static_cast<const std::byte*>(piece) + i, kWord);
        }
        return static_cast<Strided*>(self)->next_call();
    }
    /// The place of a packed word. Pieces are of 64 KiB except for the last, so none cuts a word.
    static std::uint64_t place(std::uint64_t packed) { return packed * kStride; }
};

struct Job {
    ThreadRank& me;
    ucg_context_h context = nullptr;
    ucg_group_h group = nullptr;
};

ucg_status_t start_and_end(Job& job, ucg_coll_h coll, Form form) {
    struct End {
        ucg_status_t status = UCG_INPROGRESS;
        static void tell(void* self, ucg_coll_h /*coll*/, ucg_status_t status) {
            static_cast<End*>(self)->status = status;
        }
    } end;
    unsigned looks = 0;
    ucg_status_t status = form == Form::polled        ? ucg_coll_post(coll, &looks, nullptr)
                          : form == Form::called_back ? ucg_coll_start_cb(coll, End::tell, &end)
                                                      : ucg_coll_start(coll);
    while (status == UCG_INPROGRESS) {
        ucg_completion_t told = {};
        if (form == Form::waited_for) {
            status = ucg_coll_wait(coll);
        } else if (form == Form::tested) {
            status = ucg_coll_test(coll);
        } else if (form == Form::called_back) {
            ucg_context_progress(job.context);
            status = end.status;
        } else if (ucg_context_poll(job.context, &told, 1) == 1) {
            status = told.status;
        }
    }
    return status;
}

ucg_status_t run_or_post(Job& job, const ucg_coll_params_t& params) {
    unsigned looks = 2;
    ucg_coll_h coll = nullptr;
    ucg_status_t status = ucg_coll_run_or_post(job.group, &params, &looks, nullptr, &coll);
    if (status != UCG_INPROGRESS) {
        return status;
    }
    ucg_completion_t told = {};
    while (ucg_context_poll(job.context, &told, 1) == 0) {
    }
    const ucg_status_t freed = ucg_coll_free(coll);
    return freed == UCG_OK ? told.status : freed;
}

ucg_status_t repeat(ucg_coll_h coll, const ucg_coll_params_t& params, Form form) {
    if (form == Form::repeated) {
        return ucg_coll_repeat(coll, params.send_buffer, params.recv_buffer);
    }
    const ucg_status_t status = ucg_coll_restart(coll, params.send_buffer, params.recv_buffer);
    return status == UCG_INPROGRESS ? ucg_coll_wait(coll) : status;
}

ucg_status_t run(Job& job, const ucg_coll_params_t& params, Form form) {
    if (form == Form::blocking) {
        return ucg_coll_run(job.group, &params);
    }
    if (form == Form::at_once) {
        return run_or_post(job, params);
    }
    const bool repeated = form == Form::repeated || form == Form::restarted;
    ucg_coll_params_t other = params;
    if (repeated) { // It is prepared with buffers other than the ones that it runs with.
        other.send_buffer = nullptr;
        other.recv_buffer = nullptr;
    }
    ucg_coll_h coll = nullptr;
    ucg_status_t status = ucg_coll_init(job.group, &other, &coll);
    if (status == UCG_OK) {
        status = repeated ? repeat(coll, params, form) : start_and_end(job, coll, form);
        const ucg_status_t freed = ucg_coll_free(coll);
        status = freed == UCG_OK ? status : freed;
    }
    return status;
}

/// Bit 0 of `sides` means that the send buffer has a layout, bit 1 that the receive buffer has one.
std::string check(Job& job, CollectiveCase& c, Form form, unsigned sides) {
    const std::vector<std::int64_t> before = c.receive;
    Strided send(c.send);
    Strided receive(c.receive);
    c.params.field_mask |= UCG_COLL_PARAM_FIELD_LAYOUTS;
    if ((sides & 1U) != 0) {
        c.params.send_layout = &send.layout;
        c.params.send_buffer = send.words.data();
    }
    if ((sides & 2U) != 0) {
        c.params.recv_layout = &receive.layout;
        c.params.recv_buffer = receive.words.data();
    }
    const ucg_status_t status = run(job, c.params, form);
    if ((sides & 2U) != 0) {
        c.receive = receive.dense();
    }
    if (status != UCG_OK) {
        return ucg_status_string(status);
    }
    const bool untouched = !c.expected.empty() || c.receive == before;
    return right(c) && untouched && send.gaps_intact() && receive.gaps_intact() ? ""
                                                                                : "a wrong result";
}

std::string check_all(Job& job, std::size_t count) {
    const unsigned size = job.me.meeting->size();
    for (int type = 0; type < UCG_COLL_LAST; ++type) {
        for (const Form form : kForms) {
            for (unsigned variant = 1; variant < 8; ++variant) {
                CollectiveCase c{job.me.rank, size, (size - 1) / 2, count, variant > 3};
                fill(c, static_cast<ucg_coll_type_t>(type));
                const std::string wrong = check(job, c, form, variant & 3U);
                if (!wrong.empty()) {
                    return std::string(ucg_coll_type_string(c.params.type)) + ", form " +
                           std::to_string(static_cast<int>(form)) + ", variant " +
                           std::to_string(variant) + ": " + wrong;
                }
            }
        }
    }
    return "";
}

/// Lets the second piece fail to be packed, or unpacked, on rank 1 alone. What is no error code
/// ends the collective as an internal error.
std::string fail(Job& job, Form form, unsigned sides, ucg_status_t failure) {
    CollectiveCase c{job.me.rank, job.me.meeting->size(), 0, 9000, false};
    fill(c, UCG_COLL_ALLREDUCE);
    Strided send(c.send);
    Strided receive(c.receive);
    c.params.field_mask |= UCG_COLL_PARAM_FIELD_LAYOUTS;
    c.params.send_layout = &send.layout;
    c.params.send_buffer = send.words.data();
    c.params.recv_layout = &receive.layout;
    c.params.recv_buffer = receive.words.data();
    Strided& broken = sides == 1 ? send : receive;
    broken.failing_calls = job.me.rank == 1 ? 2 : 0;
    broken.failure = failure;
    const ucg_status_t as_told = failure < UCG_OK ? failure : UCG_ERR_INTERNAL;
    const ucg_status_t expected = job.me.rank == 1 ? as_told : UCG_OK;
    if (run(job, c.params, form) != expected) {
        return "a layout's failure is not what the collective ends with";
    }
    broken.failing_calls = 0;
    c.receive.assign(c.receive.size(), 0);
    if (run(job, c.params, form) != UCG_OK) {
        return "what follows a failure fails as well";
    }
    c.receive = receive.dense();
    return right(c) ? "" : "what follows a failure is wrong";
}

template <typename Body>
std::string run_ranks(unsigned ranks, Body&& body) {
    return run_shm_group(ranks, [&](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
        Job job{me, context, group};
        return body(job);
    });
}

} // namespace

TEST_CASE("capi: every collective of elements with a layout of the program's",
          "[capi][layouts][shm]") {
    const unsigned ranks = GENERATE(1U, 2U, 3U);
    const std::size_t count = GENERATE(0U, 1U, 9000U);
    CHECK(run_ranks(ranks, [&](Job& job) { return check_all(job, count); }) == "");
}

TEST_CASE("capi: a layout's functions may fail", "[capi][layouts][shm]") {
    for (const Form form : kForms) {
        for (const unsigned side : {1U, 2U}) {
            for (const ucg_status_t failure : {UCG_ERR_IO_ERROR, UCG_INPROGRESS}) {
                CAPTURE(static_cast<int>(form), side, failure);
                CHECK(run_ranks(2, [&](Job& job) { return fail(job, form, side, failure); }) == "");
            }
        }
    }
}

TEST_CASE("capi: in place, only what a rank contributes is packed", "[capi][shm]") {
    const ucg_coll_type_t type =
        GENERATE(UCG_COLL_ALLGATHER, UCG_COLL_ALLGATHERV, UCG_COLL_GATHER, UCG_COLL_GATHERV);
    CAPTURE(ucg_coll_type_string(type));
    CHECK(run_shm_group(3, [&](ThreadRank& me, ucg_context_h, ucg_group_h group) -> std::string {
              constexpr std::uint64_t kCount = 5;
              constexpr unsigned kRoot = 1;
              const bool rooted = type == UCG_COLL_GATHER || type == UCG_COLL_GATHERV;
              const std::vector<std::uint64_t> counts(3, kCount);
              const std::vector<std::int64_t> places = {0, kCount, 2 * kCount};
              std::vector<std::int64_t> dense(3 * kCount, -1); // Of others: nothing yet.
              for (std::uint64_t i = 0; i < kCount; ++i) {
                  dense[me.rank * kCount + i] = static_cast<std::int64_t>(me.rank);
              }
              Strided blocks(dense);
              const std::vector<std::int64_t> own(kCount, static_cast<std::int64_t>(me.rank));
              ucg_coll_params_t params = {};
              params.field_mask = UCG_COLL_PARAM_FIELD_LAYOUTS | UCG_COLL_PARAM_FIELD_VECTORS;
              params.type = type;
              params.count = kCount;
              params.element_bytes = kWord;
              params.root = rooted ? kRoot : 0;
              params.recv_counts = counts.data();
              params.recv_displs = places.data();
              const bool receives = !rooted || me.rank == kRoot;
              params.flags = receives ? UCG_COLL_FLAG_IN_PLACE : 0;
              params.send_buffer = receives ? nullptr : own.data();
              params.recv_buffer = blocks.words.data();
              params.recv_layout = &blocks.layout;
              if (const ucg_status_t status = ucg_coll_run(group, &params); status != UCG_OK) {
                  return ucg_status_string(status);
              }
              if (!receives) {
                  return "";
              }
              for (std::uint64_t i = 0; i < 3 * kCount; ++i) {
                  if (blocks.dense()[i] != static_cast<std::int64_t>(i / kCount)) {
                      return "a wrong result";
                  }
              }
              return blocks.packed_bytes == kCount * kWord && blocks.gaps_intact()
                         ? ""
                         : std::to_string(blocks.packed_bytes) + " bytes packed";
          }) == "");
}
