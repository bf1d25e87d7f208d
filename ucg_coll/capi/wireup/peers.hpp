// The ranks of a group that is being wired up, as one of them sees them: how it exchanges values
// with the others, and which rank tells the user what all of them know.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/group_params.hpp"
#include "ucg_coll/capi/remarks.hpp"
#include "ucg_coll/capi/wireup/exchange.hpp"

namespace ucg::capi {

class Peers {
  public:
    /// All arguments must outlive it.
    Peers(Remarks& remarks, const GroupParams& params, WireupExchanges& exchanges)
        : remarks_(remarks), params_(params), exchanges_(exchanges),
          rank_(static_cast<Rank>(params.rank)), speaker_(rank_) {}

    Rank rank() const { return rank_; }
    std::uint32_t count() const { return params_.size; }
    /// Returns the name with which this process begins what it says.
    const std::string& process_name() const { return remarks_.name(); }

    /// To be awaited: an exchange, which gives how it ended. Takes no memory, except to say that it
    /// failed.
    class Ended : public WireupExchanges::Ended {
      public:
        Ended(Peers& peers, const WireupExchange& exchange)
            : WireupExchanges::Ended(peers.exchanges_, exchange), peers_(peers) {}

        Status await_resume() { return peers_.outcome(WireupExchanges::Ended::await_resume()); }

      private:
        Peers& peers_;
    };

    /// To be awaited: an exchange, which gives what all ranks have told, by rank.
    template <typename T>
    class Told {
      public:
        Told(Peers& peers, GatheredValues<T> memory)
            : memory_(std::move(memory)), ended_(peers.allgather(*memory_)) {}

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) noexcept {
            ended_.await_suspend(waiting);
        }
        Result<std::vector<T>> await_resume() {
            if (Status status = ended_.await_resume(); !status.ok()) {
                return status;
            }
            return std::move(memory_->all);
        }

      private:
        GatheredValues<T> memory_;
        Ended ended_;
    };

    /// Tells all ranks `mine`, and gives what each tells. To be awaited. Collective.
    template <typename T>
    Told<T> allgather(const T& mine) {
        return Told<T>(*this, values_of(params_.size, mine));
    }

    /// An allgather in memory that is there already and outlives the wait. To be awaited.
    /// Collective.
    template <typename T>
    Ended allgather(Gathered<T, std::vector<T>>& memory) {
        static_assert(std::is_trivially_copyable_v<T>);
        UCG_ASSERT(memory.all.size() == params_.size);
        return {*this, {&memory.mine, memory.all.data(), sizeof(T), &memory.under_way}};
    }

    /// An allgather of texts, none of them longer than `width` bytes: each takes so many bytes, and
    /// is followed by zeros. To be awaited. Collective.
    Ended allgather(Gathered<std::string, std::string>& memory, std::uint64_t width);

    /// To be awaited where this rank waits for no exchange, but for something that comes about by
    /// itself: its caller does something else meanwhile.
    WireupExchanges::Pause pause() { return exchanges_.pause(); }

    /// Did an allgather fail at this rank? It need not have failed at the others.
    bool interrupted() const { return interrupted_; }

    /// To be called for a failure of which all ranks know: `speaker` tells the user, and the others
    /// keep quiet.
    void set_speaker(Rank speaker) { speaker_ = speaker; }
    /// Does this rank tell the user why there is no group? It does so for a failure that it alone
    /// knows of.
    bool speaks() const { return speaker_ == rank_; }

    /// Is this rank the first one with a certain trouble, and is it the first time in this process?
    /// Many ranks usually share one trouble. To be asked on all ranks, since any of them may be the
    /// first one of another group.
    template <typename Told, typename InTrouble>
    bool is_first(const std::vector<Told>& all, Once message, InTrouble in_trouble) {
        const auto first = std::find_if(all.begin(), all.end(), in_trouble);
        return first != all.end() && is_first(static_cast<Rank>(first - all.begin()), message);
    }
    bool is_first(Rank first, Once message) { return remarks_.first(message) && first == rank_; }

  private:
    Status outcome(bool succeeded);

    Remarks& remarks_;
    const GroupParams& params_;
    WireupExchanges& exchanges_;
    Rank rank_;
    Rank speaker_;
    bool interrupted_ = false;
};

} // namespace ucg::capi
