// The ranks of a group that is being wired up, as one of them sees them: how it exchanges values
// with the others, and who of them tells the user what they all know.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"

namespace ucg::capi {

class Peers {
  public:
    /// Both must outlive it.
    Peers(Context& context, const ucg_group_params_t& params)
        : context_(context), params_(params), rank_(static_cast<Rank>(params.rank)),
          speaker_(rank_) {}

    Rank rank() const { return rank_; }
    std::uint32_t count() const { return params_.size; }

    /// What each rank tells, by rank. Collective.
    template <typename T>
    Result<std::vector<T>> allgather(const T& mine) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::vector<T> all(params_.size);
        if (Status status = allgather(mine, all); !status.ok()) {
            return status;
        }
        return all;
    }

    /// The same, into `all`, which has room for all of them: takes no memory. Collective.
    template <typename T>
    Status allgather(const T& mine, std::vector<T>& all) {
        static_assert(std::is_trivially_copyable_v<T>);
        UCG_ASSERT(all.size() == params_.size);
        return allgather_bytes(&mine, all.data(), sizeof(T));
    }

    /// The same of texts, none of them longer than `width`: each is followed by zeros in `all`.
    /// Takes no memory once they have been exchanged. Collective.
    Status allgather_texts(std::string mine, std::uint64_t width, std::string& all);

    /// Did an allgather fail at this rank? It need not have failed at the others.
    bool interrupted() const { return interrupted_; }

    /// All ranks know of a failure: this one tells the user, and the others keep quiet.
    void set_speaker(Rank speaker) { speaker_ = speaker; }
    /// Does this rank tell why there is no group? A failure that it alone knows of it tells.
    bool speaks() const { return speaker_ == rank_; }

    /// Is this rank the first in trouble, and is it the first time in this process? Many ranks
    /// usually share one trouble. To be asked on all ranks, since any of them may be the first one
    /// of another group.
    template <typename Told, typename InTrouble>
    bool is_first(const std::vector<Told>& all, Context::Once message, InTrouble in_trouble) {
        const auto first = std::find_if(all.begin(), all.end(), in_trouble);
        return first != all.end() && is_first(static_cast<Rank>(first - all.begin()), message);
    }
    bool is_first(Rank first, Context::Once message) {
        return context_.first(message) && first == rank_;
    }

  private:
    Status allgather_bytes(const void* mine, void* all, std::size_t bytes);

    Context& context_;
    const ucg_group_params_t& params_;
    Rank rank_;
    Rank speaker_;
    bool interrupted_ = false;
};

} // namespace ucg::capi
