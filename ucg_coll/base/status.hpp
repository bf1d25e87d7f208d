// How this library reports that something went wrong. Three kinds, never mixed:
//
//   1. Our own bug            -> UCG_ASSERT (assert.hpp). Never a return value.
//   2. A condition of the     -> the return type: `Result<T>`, `bool`, an enum. The caller must
//      contract                  handle it and may not pass it on as if it were news.
//   3. The environment failed -> `Status`: made and logged once where it was found, with the cause
//                                and a remedy, then passed upward unchanged.
//
// No exception leaves a folder by design. Allocation failure may throw during set-up; the C edge
// (capi/) turns any exception into a code, so that nothing throws through C.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ucg_coll/base/assert.hpp"

namespace ucg {

/// The classes of failure. capi/ maps them one to one to ucg_status_t.
enum class Code {
    ok,
    invalid_argument, ///< The caller's input is wrong: malformed text, rank out of range, ...
    unsupported,      ///< Right in principle, but not offered here; use another way.
    unreachable,      ///< No transport reaches the peer.
    out_of_memory,    ///< Process or shared memory is exhausted.
    io_error,         ///< The operating system or a transport failed.
    timed_out,        ///< A peer did not answer in time.
    disagreement,     ///< The ranks of a group gave inputs that must be equal but are not.
    busy,             ///< The caller ends or starts something that is still in use.
};

/// Returns the name of a code as it appears in messages, for example "invalid argument".
std::string_view name(Code code);

/// Success (one null pointer, nothing allocated) or a code with a sentence that names what, where
/// and why. Copying shares the text. Thread-safe to read.
class [[nodiscard]] Status {
  public:
    Status() = default; ///< Success.
    Status(Code code, std::string message)
        : failure_(std::make_shared<Failure>(Failure{code, std::move(message)})) {
        UCG_ASSERT(code != Code::ok);
    }

    bool ok() const { return failure_ == nullptr; }
    Code code() const { return failure_ ? failure_->code : Code::ok; }

    /// Returns the sentence; empty when ok.
    std::string_view message() const {
        return failure_ ? std::string_view(failure_->message) : std::string_view();
    }

  private:
    struct Failure {
        Code code;
        std::string message;
    };
    std::shared_ptr<const Failure> failure_;
};

/// Either a value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Status status) : content_(std::in_place_index<1>, std::move(status)) {
        UCG_ASSERT(!this->status().ok());
    }

    bool ok() const { return content_.index() == 0; }
    explicit operator bool() const { return ok(); }

    /// REQUIRES: ok().
    T& value() & {
        UCG_ASSERT(ok());
        return *std::get_if<0>(&content_);
    }
    const T& value() const& {
        UCG_ASSERT(ok());
        return *std::get_if<0>(&content_);
    }
    T&& value() && {
        UCG_ASSERT(ok());
        return std::move(*std::get_if<0>(&content_));
    }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }

    /// Returns the failure, or an ok Status when there is a value.
    Status status() const { return ok() ? Status() : *std::get_if<1>(&content_); }

  private:
    std::variant<T, Status> content_;
};

} // namespace ucg
