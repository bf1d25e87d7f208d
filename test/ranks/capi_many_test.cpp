// What a process that makes many groups saves: only the first ones have memory that they could do
// without.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/context.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;
using ucg::transport::ShmOptions;

constexpr std::size_t kFirstGroups = 16;

/// A profile that asks for deep flag slots. Only its owner's scope has the file.
class DeepProfile {
  public:
    DeepProfile() {
        const int file = ::mkstemp(path_.data());
        REQUIRE(file >= 0);
        const std::string_view text = "version = 1\n"
                                      "[memory.flag_slots]\n"
                                      "depth = 64\n";
        REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ::close(file);
    }
    ~DeepProfile() { ::unlink(path_.c_str()); }
    DeepProfile(const DeepProfile&) = delete;
    DeepProfile& operator=(const DeepProfile&) = delete;

    const char* path() const { return path_.c_str(); }

  private:
    std::string path_ = "/tmp/ucg-profile-XXXXXX";
};

/// Makes a group and returns by which options it shares memory.
ShmOptions options_of_next(ThreadRank& me, ucg_context_h context,
                           std::vector<ucg_group_h>& groups) {
    const ucg_group_params_t params = me.group_params();
    if (ucg_group_create(context, &params, &groups.emplace_back()) != UCG_OK) {
        return {};
    }
    return reinterpret_cast<ucg::capi::Context*>(context)
        ->latest_options()
        .of(me.meeting->size())
        .value_or(ShmOptions());
}

std::string make_groups(ThreadRank& me, ucg_context_h context, std::vector<ucg_group_h>& groups) {
    while (groups.size() < kFirstGroups) {
        const ShmOptions options = options_of_next(me, context, groups);
        if (options.own_processors && options.flag_slot_depth != 64) {
            return "group " + std::to_string(groups.size()) + " has shallow flag slots";
        }
    }
    if (options_of_next(me, context, groups).flag_slot_depth != ucg::transport::kFlagSlotDepth) {
        return "a further group has deep flag slots";
    }
    return "";
}

} // namespace

TEST_CASE("capi: of many groups only the first ones have deeper flag slots", "[capi][many]") {
    const DeepProfile profile;
    CHECK(run_thread_ranks(2, [&](ThreadRank& me) {
              ucg_config_h config = nullptr;
              ucg_context_h context = nullptr;
              ucg_config_read(&config);
              ucg_config_modify(config, "TLS", "shm");
              ucg_config_modify(config, "PROFILE", profile.path());
              ucg_context_create(nullptr, config, &context);
              ucg_config_release(config);
              std::vector<ucg_group_h> groups;
              const std::string complaint = make_groups(me, context, groups);
              me.meeting->wait();
              for (ucg_group_h group : groups) {
                  ucg_group_destroy(group);
              }
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}
