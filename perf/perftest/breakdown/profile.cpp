#include "perf/perftest/breakdown/profile.hpp"

#include <tuple>
#include <type_traits>

#include <ucs/profile/profile_on.h>

#include "perf/perftest/launch/agree.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest::breakdown {

namespace {

/// The type of UCX's number for a place in the code: int in 1.13, short in 1.18.
template <typename Record>
struct PlaceOf;
template <typename Result, typename... Others>
struct PlaceOf<Result(Others...)> {
    using Last = std::tuple_element_t<sizeof...(Others) - 1, std::tuple<Others...>>;
    using Type = std::remove_volatile_t<std::remove_pointer_t<Last>>;
};
using Place = PlaceOf<decltype(ucs_profile_record)>::Type;

/// The most bytes of a trace that UCX keeps.
constexpr std::size_t kProfileBytes = 16 << 20;

/// A profile of this program's own, apart from that of UCX_PROFILE_MODE. Its end writes the file.
class Profile {
  public:
    ~Profile() {
        if (context_ != nullptr) {
            ucs_profile_cleanup(context_);
        }
    }
    Profile() = default;
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;

    Status open(const std::string& file) {
        const ucs_status_t status =
            ucs_profile_init(1U << UCS_PROFILE_MODE_LOG, file.c_str(), kProfileBytes, &context_);
        return status == UCS_OK ? Status()
                                : transport::ucx::ucx_failure(status, "beginning a profile");
    }

    /// Records a scope around `call`. UCX numbers the two places at their first use.
    template <typename Call>
    Status scope(const char* name, Call call, Place (&places)[2]) {
        if (context_ == nullptr) {
            return call();
        }
        ucs_profile_record(context_, UCS_PROFILE_TYPE_SCOPE_BEGIN, "", 0, 0, __FILE__, __LINE__,
                           name, &places[0]);
        Status status = call();
        ucs_profile_record(context_, UCS_PROFILE_TYPE_SCOPE_END, name, 0, 0, __FILE__, __LINE__,
                           name, &places[1]);
        return status;
    }

  private:
    ucs_profile_context_t* context_ = nullptr;
};

} // namespace

Status write_profile(Runtime& runtime, LowLevel& level, const std::string& file,
                     std::size_t round_trips) {
    Profile profile;
    Status status;
    if (runtime.rank() == 0) {
        status = profile.open(file);
    }
    status = agree(runtime, status);
    Place posts[2] = {-1, -1};
    Place waits[2] = {-1, -1};
    const auto post = [&] { return level.post_message(); };
    const auto await = [&] { return level.await_message(); };
    for (std::size_t i = 0; i < round_trips && status.ok(); ++i) {
        if (runtime.rank() == 0) {
            status = profile.scope("LLP_post", post, posts);
            status =
                status.ok() ? profile.scope("LLP_prog until the answer", await, waits) : status;
        } else {
            status = await();
            status = status.ok() ? post() : status;
        }
    }
    return agree(runtime, status);
}

} // namespace ucg::perftest::breakdown
