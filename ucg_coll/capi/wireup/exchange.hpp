// How a group's wire-up waits for the other ranks: it says what it tells them and where what all
// tell is to be put, and goes on when that is there. Nothing here knows how an exchange is made. It
// also pauses, where what it waits for brings itself about meanwhile.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

/// One allgather: so many bytes of each rank, by rank.
struct Exchange {
    const void* mine = nullptr;
    void* all = nullptr;
    std::size_t bytes = 0;
    bool* under_way = nullptr; ///< The caller of the library reads and writes both.
};

/// The exchanges of one wire-up, of which one is due at a time.
class Exchanges {
  public:
    /// To be awaited: did it succeed at this rank? Takes no memory.
    class Ended {
      public:
        Ended(Exchanges& exchanges, const Exchange& exchange)
            : exchanges_(exchanges), exchange_(exchange) {}

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) noexcept {
            exchanges_.due_ = exchange_;
            exchanges_.waiting_ = waiting;
        }
        bool await_resume() const noexcept { return exchanges_.succeeded_; }

      private:
        Exchanges& exchanges_;
        Exchange exchange_;
    };
    Ended make(const Exchange& exchange) { return {*this, exchange}; }

    /// To be awaited: go_on() is the end of it. Takes no memory.
    class Pause {
      public:
        explicit Pause(Exchanges& exchanges) : exchanges_(exchanges) {}

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) noexcept {
            exchanges_.waiting_ = waiting;
        }
        void await_resume() const noexcept {}

      private:
        Exchanges& exchanges_;
    };
    Pause pause() { return Pause(*this); }

    /// The one that the wire-up waits for; empty before it begins, while it pauses, and when it has
    /// ended.
    const Exchange& due() const { return due_; }

    /// Does it wait, and for no exchange?
    bool pauses() const { return waiting_ != nullptr && due_.under_way == nullptr; }

    /// It looks again for what it waits for. REQUIRES: pauses().
    void go_on() { std::exchange(waiting_, nullptr).resume(); }

    /// From now on its memory belongs to the caller of the library as well, until end().
    void begin() noexcept { *due_.under_way = true; }

    /// The exchange has ended, here: the wire-up goes on, until it waits for the next or ends.
    void end(bool succeeded) {
        *due_.under_way = false;
        due_ = {};
        succeeded_ = succeeded;
        std::exchange(waiting_, nullptr).resume();
    }

  private:
    Exchange due_;
    std::coroutine_handle<> waiting_;
    bool succeeded_ = false;
};

/// What a rank tells in an exchange, and what all tell.
template <typename Mine, typename All>
struct Gathered {
    Mine mine;
    All all;
    bool under_way = false;
};

/// Of a wire-up that is given up in the middle, who makes the exchange may go on for ever.
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
