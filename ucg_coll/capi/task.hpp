// A function that waits in the middle: a coroutine. It begins when another coroutine awaits it, or
// when a function that is no coroutine starts it. It gives its awaiter what it returns, or throws
// there what it has thrown. Whatever a chain of such functions waits for resumes the innermost one
// by its handle.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <variant>

#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

/// What such a function returns. When it is destroyed, the function's locals go with it, also while
/// the function waits, and so do all functions that it awaits. To be awaited, or started, once.
template <typename T>
class [[nodiscard]] Task {
  public:
    class promise_type;
    using Handle = std::coroutine_handle<promise_type>;

    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task() {
        if (handle_) {
            handle_.destroy();
        }
    }

    /// Begins the function. Returns when it first waits, or has ended.
    void start() { handle_.resume(); }
    bool ended() const { return handle_.done(); }
    /// Returns what the function has returned, or throws what it has thrown. REQUIRES: ended().
    /// Once.
    T outcome() { return handle_.promise().take(); }

    /// Starts the task; the awaiter goes on when the task has ended.
    struct Awaiter {
        Handle handle;

        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
            handle.promise().set_awaiting(awaiting);
            return handle;
        }
        T await_resume() { return handle.promise().take(); }
    };
    Awaiter operator co_await() && noexcept { return {handle_}; }

  private:
    explicit Task(Handle handle) : handle_(handle) {}

    Handle handle_;
};

template <typename T>
class Task<T>::promise_type {
  public:
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }

    /// Goes over to the awaiter, without a call: however many tasks end one after the other, the
    /// stack grows no deeper.
    struct HandBack {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle ended) const noexcept {
            return ended.promise().awaiting_;
        }
        void await_resume() const noexcept {}
    };
    HandBack final_suspend() const noexcept { return {}; }

    void return_value(T value) { outcome_.template emplace<1>(std::move(value)); }
    void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }

    void set_awaiting(std::coroutine_handle<> awaiting) noexcept { awaiting_ = awaiting; }
    T take() {
        if (outcome_.index() == 2) {
            std::rethrow_exception(std::get<2>(outcome_));
        }
        UCG_ASSERT(outcome_.index() == 1);
        return std::move(std::get<1>(outcome_));
    }

  private:
    std::variant<std::monostate, T, std::exception_ptr> outcome_;
    std::coroutine_handle<> awaiting_ = std::noop_coroutine();
};

} // namespace ucg::capi
