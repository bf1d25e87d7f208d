// How a group's wire-up waits for the other ranks: it says what it tells them and where what all
// tell is to be put, and goes on when that is there. Nothing here knows how an exchange is made. A
// wire-up also pauses, where it waits for something that comes about by itself.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

/// One allgather of `bytes` bytes of each rank, ordered by rank.
struct WireupExchange {
    const void* mine = nullptr;
    void* all = nullptr;
    std::size_t bytes = 0;
    bool* under_way = nullptr; ///< The caller of the library may read `mine` and write `all`.
};

/// The exchanges of one wire-up, of which at most one is due at a time.
class WireupExchanges {
  public:
    /// To be awaited: makes an exchange, and gives whether it succeeded at this rank. Takes no
    /// memory.
    class Ended {
      public:
        Ended(WireupExchanges& exchanges, const WireupExchange& exchange)
            : exchanges_(exchanges), exchange_(exchange) {}

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) noexcept {
            exchanges_.due_ = exchange_;
            exchanges_.waiting_ = waiting;
        }
        bool await_resume() const noexcept { return exchanges_.succeeded_; }

      private:
        WireupExchanges& exchanges_;
        WireupExchange exchange_;
    };
    Ended make(const WireupExchange& exchange) { return {*this, exchange}; }

    /// To be awaited: pauses the wire-up until go_on(). Takes no memory.
    class Pause {
      public:
        explicit Pause(WireupExchanges& exchanges) : exchanges_(exchanges) {}

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) noexcept {
            exchanges_.waiting_ = waiting;
        }
        void await_resume() const noexcept {}

      private:
        WireupExchanges& exchanges_;
    };
    Pause pause() { return Pause(*this); }

    /// The exchange that the wire-up waits for; empty before the wire-up begins, while it pauses,
    /// and when it has ended.
    const WireupExchange& due() const { return due_; }

    /// Does the wire-up wait, but for no exchange?
    bool pauses() const { return waiting_ != nullptr && due_.under_way == nullptr; }

    /// Resumes a wire-up that pauses; it looks again for what it waits for. REQUIRES: pauses().
    void go_on() { std::exchange(waiting_, nullptr).resume(); }

    /// The exchange that is due begins: its memory belongs to the caller of the library as well,
    /// until end().
    void begin() noexcept { *due_.under_way = true; }

    /// The exchange has ended at this rank: resumes the wire-up, which runs until it waits again or
    /// ends.
    void end(bool succeeded) {
        *due_.under_way = false;
        due_ = {};
        succeeded_ = succeeded;
        std::exchange(waiting_, nullptr).resume();
    }

  private:
    WireupExchange due_;
    std::coroutine_handle<> waiting_;
    bool succeeded_ = false;
};

/// The memory of an exchange: what this rank tells, and what all tell.
template <typename Mine, typename All>
struct Gathered {
    Mine mine;
    All all;
    bool under_way = false;
};

/// Deletes the memory of an exchange unless that is under way: after a wire-up was given up in the
/// middle, whoever makes the exchange may go on for ever.
struct LeaveUnderWay {
    template <typename Memory>
    void operator()(Memory* memory) const {
        if (!memory->under_way) {
            delete memory;
        }
    }
};

template <typename T>
using GatheredValues = std::unique_ptr<Gathered<T, std::vector<T>>, LeaveUnderWay>;
using GatheredTexts = std::unique_ptr<Gathered<std::string, std::string>, LeaveUnderWay>;

template <typename T>
GatheredValues<T> values_of(std::size_t ranks, const T& mine = {}) {
    return GatheredValues<T>(new Gathered<T, std::vector<T>>{mine, std::vector<T>(ranks)});
}

} // namespace ucg::capi
