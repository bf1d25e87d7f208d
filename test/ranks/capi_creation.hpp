// A job for tests of groups that are made without waiting. All ranks are contexts of this process,
// and one thread drives them in an order of its own choice, so that a rank that waited would wait
// for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace ucg::test {

/// The exchanges of the ranks that make one group.
class RankExchanges {
  public:
    explicit RankExchanges(std::size_t ranks) : told_(ranks) {}

    std::size_t size() const { return told_.size(); }
    void tell(std::size_t rank, const void* data, std::size_t bytes) {
        told_[rank].emplace_back(static_cast<const char*>(data), bytes);
    }
    /// False while some rank has not sent its part of that round.
    bool gather(std::size_t round, char* all) const {
        for (const std::vector<std::string>& each : told_) {
            if (each.size() <= round) {
                return false;
            }
        }
        for (const std::vector<std::string>& each : told_) {
            std::memcpy(all, each[round].data(), each[round].size());
            all += each[round].size();
        }
        return true;
    }

  private:
    std::vector<std::vector<std::string>> told_; ///< The index is rank, then round.
};

/// The creation of one group at one rank.
class Creation {
  public:
    /// What a test of the exchange does first, if anything; it stands for the program's own
    /// progress.
    std::function<void()> meanwhile;
    int starts_left = 1 << 20;    ///< After so many more exchanges, none can be started.
    bool ends_in_failure = false; ///< Exchanges fail when they end.

    Creation(std::shared_ptr<RankExchanges> bootstrap, std::size_t rank)
        : bootstrap_(std::move(bootstrap)), rank_(rank) {}
    Creation(const Creation&) = delete;
    Creation& operator=(const Creation&) = delete;

    ucg_group_params_t params() {
        ucg_group_params_t params = {};
        params.field_mask = UCG_GROUP_PARAM_FIELD_OOB_START;
        params.rank = static_cast<std::uint32_t>(rank_);
        params.size = static_cast<std::uint32_t>(bootstrap_->size());
        params.oob_arg = this;
        params.oob_allgather_start = begin;
        params.oob_allgather_test = look;
        return params;
    }
    ucg_status_t start(ucg_context_h context) {
        const ucg_group_params_t params = this->params();
        const ucg_status_t status = ucg_group_create_start(context, &params, &creation_);
        outcome_ = status == UCG_OK ? UCG_INPROGRESS : status;
        return status;
    }
    /// True once the creation has ended.
    bool test() {
        if (outcome_ == UCG_INPROGRESS) {
            outcome_ = ucg_group_create_test(creation_, &group);
        }
        return outcome_ != UCG_INPROGRESS;
    }
    void abandon() {
        ucg_group_create_abandon(creation_);
        outcome_ = UCG_ERR_IO_ERROR;
    }
    ucg_status_t outcome() const { return outcome_; }
    ucg_group_creation_h handle() const { return creation_; }
    std::size_t exchanges() const { return exchanges_; } ///< How many have begun.
    bool under_way() const { return receive_ != nullptr; }

    ucg_group_h group = nullptr;

  private:
    static int begin(void* self, const void* send, void* receive, std::size_t bytes) {
        auto& me = *static_cast<Creation*>(self);
        if (me.starts_left-- <= 0 || me.under_way()) {
            return -1;
        }
        me.bootstrap_->tell(me.rank_, send, bytes);
        me.send_ = send;
        me.receive_ = static_cast<char*>(receive);
        ++me.exchanges_;
        return 0;
    }
    static ucg_status_t look(void* self) {
        auto& me = *static_cast<Creation*>(self);
        if (me.meanwhile) {
            const auto meanwhile = me.meanwhile; // It may change what is done next time.
            meanwhile();
        }
        if (me.receive_ == nullptr) {
            return UCG_ERR_INVALID_PARAM;
        }
        if (!me.bootstrap_->gather(me.exchanges_ - 1, me.receive_)) {
            return UCG_INPROGRESS;
        }
        me.receive_ = nullptr;
        return me.ends_in_failure ? UCG_ERR_IO_ERROR : UCG_OK;
    }

    std::shared_ptr<RankExchanges> bootstrap_;
    std::size_t rank_;
    std::size_t exchanges_ = 0;
    const void* send_ = nullptr;
    char* receive_ = nullptr;
    ucg_group_creation_h creation_ = nullptr;
    ucg_status_t outcome_ = UCG_ERR_INTERNAL;
};

/// The contexts of a job. One thread drives all of them, except where they all wait for one
/// another.
class JobContexts {
  public:
    using Settings = std::vector<std::pair<const char*, const char*>>;

    explicit JobContexts(std::size_t ranks, const Settings& settings = {}) : contexts_(ranks) {
        for (ucg_context_h& context : contexts_) {
            context = make_context(settings);
        }
    }
    /// The workers of UCX have to disconnect from one another.
    ~JobContexts() {
        static_cast<void>(together([this](ThreadRank& me) -> std::string {
            ucg_context_destroy(contexts_[me.rank]);
            return "";
        }));
    }
    JobContexts(const JobContexts&) = delete;
    JobContexts& operator=(const JobContexts&) = delete;

    static ucg_context_h make_context(const Settings& settings, bool threads = false) {
        ucg_context_params_t params = {};
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = threads ? UCG_THREAD_MODE_MULTIPLE : UCG_THREAD_MODE_SINGLE;
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        for (const auto& [name, value] : settings) {
            ucg_config_modify(config, name, value);
        }
        ucg_context_h context = nullptr;
        ucg_context_create(&params, config, &context);
        ucg_config_release(config);
        return context;
    }

    std::size_t size() const { return contexts_.size(); }
    ucg_context_h context(std::size_t rank) const { return contexts_[rank]; }

    /// Runs `body` for each rank in a thread of its own; returns what went wrong.
    std::string together(const std::function<std::string(ThreadRank&)>& body) const {
        return run_thread_ranks(static_cast<unsigned>(size()), body);
    }

    /// Gives these ranks heaps and lets them attach to one another's; returns what went wrong.
    std::string share_memory(const std::vector<std::size_t>& ranks) const {
        return run_thread_ranks(
            static_cast<unsigned>(ranks.size()), [&](ThreadRank& me) -> std::string {
                const ucg_group_params_t params = me.group_params();
                ucg_group_h group = nullptr;
                const ucg_status_t status =
                    ucg_group_create(contexts_[ranks[me.rank]], &params, &group);
                if (status != UCG_OK) {
                    return ucg_status_string(status);
                }
                me.meeting->wait();
                return ucg_status_string(ucg_group_destroy(group)) == std::string("Success")
                           ? ""
                           : "not destroyed";
            });
    }
    std::string share_memory() const {
        std::vector<std::size_t> all;
        for (std::size_t rank = 0; rank < size(); ++rank) {
            all.push_back(rank);
        }
        return share_memory(all);
    }

  private:
    std::vector<ucg_context_h> contexts_;
};

/// A group that some ranks of the job make.
struct Members {
    std::vector<std::size_t> ranks; ///< Ranks of the job, by rank of the group.
    std::vector<std::unique_ptr<Creation>> creations;

    explicit Members(std::vector<std::size_t> of_job) : ranks(std::move(of_job)) {
        const auto bootstrap = std::make_shared<RankExchanges>(ranks.size());
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            creations.push_back(std::make_unique<Creation>(bootstrap, rank));
        }
    }

    /// Starts the creation at each rank and tests all of them in turn until all have ended; returns
    /// each rank's outcome.
    std::vector<ucg_status_t> make(const JobContexts& job) {
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            static_cast<void>(creations[rank]->start(job.context(ranks[rank])));
        }
        return test_all();
    }
    std::vector<ucg_status_t> test_all() {
        constexpr int kRounds = 100;
        for (int round = 0; round < kRounds; ++round) {
            for (const auto& creation : creations) {
                creation->test();
            }
        }
        std::vector<ucg_status_t> outcomes;
        for (const auto& creation : creations) {
            outcomes.push_back(creation->outcome());
        }
        return outcomes;
    }
    void destroy() {
        for (const auto& creation : creations) {
            if (creation->group != nullptr) {
                ucg_group_destroy(std::exchange(creation->group, nullptr));
            }
        }
    }
};

} // namespace ucg::test
