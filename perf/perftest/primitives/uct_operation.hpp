// One operation of a UCT test, posted repeatedly: the part that all measured loops have in common.
// Command and layout are template arguments, so that a loop makes no indirect calls but those into
// UCX.
#pragma once

#include <cstring>
#include <vector>

#include "perf/perftest/primitives/uct_capabilities.hpp"
#include "perf/perftest/primitives/uct_link.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// The number that a message carries, modulo 256.
using Sequence = std::uint8_t;

/// Returns whether `a` is later than `b`; right while they are less than 128 apart.
inline bool is_after(Sequence a, Sequence b) {
    return static_cast<std::int8_t>(static_cast<Sequence>(a - b)) > 0;
}

/// The objects that a UCT test needs.
struct UctSetup {
    std::unique_ptr<UctLink> link;
    Parameters parameters;
    Rank rank = 0;
};

/// UCT's atomic operations, by the type of the operand.
namespace atomic {

inline ucs_status_t add(uct_ep_h endpoint, std::uint32_t value, std::uint64_t address,
                        uct_rkey_t key) {
    return uct_ep_atomic32_post(endpoint, UCT_ATOMIC_OP_ADD, value, address, key);
}
inline ucs_status_t add(uct_ep_h endpoint, std::uint64_t value, std::uint64_t address,
                        uct_rkey_t key) {
    return uct_ep_atomic64_post(endpoint, UCT_ATOMIC_OP_ADD, value, address, key);
}
inline ucs_status_t fetch(uct_ep_h endpoint, uct_atomic_op_t operation, std::uint32_t value,
                          std::uint32_t* result, std::uint64_t address, uct_rkey_t key,
                          uct_completion_t* completion) {
    return uct_ep_atomic32_fetch(endpoint, operation, value, result, address, key, completion);
}
inline ucs_status_t fetch(uct_ep_h endpoint, uct_atomic_op_t operation, std::uint64_t value,
                          std::uint64_t* result, std::uint64_t address, uct_rkey_t key,
                          uct_completion_t* completion) {
    return uct_ep_atomic64_fetch(endpoint, operation, value, result, address, key, completion);
}
inline ucs_status_t compare_swap(uct_ep_h endpoint, std::uint32_t compared, std::uint32_t value,
                                 std::uint32_t* result, std::uint64_t address, uct_rkey_t key,
                                 uct_completion_t* completion) {
    return uct_ep_atomic_cswap32(endpoint, compared, value, address, key, result, completion);
}
inline ucs_status_t compare_swap(uct_ep_h endpoint, std::uint64_t compared, std::uint64_t value,
                                 std::uint64_t* result, std::uint64_t address, uct_rkey_t key,
                                 uct_completion_t* completion) {
    return uct_ep_atomic_cswap64(endpoint, compared, value, address, key, result, completion);
}

} // namespace atomic

/// `one_sided`: a process that waits for the peer does not progress.
template <UctCommand command, UctLayout layout, bool one_sided>
class UctOperation {
  public:
    explicit UctOperation(const UctSetup& setup)
        : resource_(setup.link->resource()), worker_(resource_.worker()),
          endpoint_(setup.link->endpoint()), source_(setup.link->source().data()),
          target_(setup.link->target().data()), remote_address_(setup.link->remote_address()),
          remote_key_(setup.link->remote_key()), bytes_(setup.parameters.bytes()), extent_(bytes_),
          header_bytes_(setup.parameters.uct_header),
          outstanding_max_(setup.parameters.outstanding == 0 ? 1 : setup.parameters.outstanding) {
        const Parameters& parameters = setup.parameters;
        if (layout == UctLayout::zero_copy && parameters.stride > 0) {
            extent_ = (parameters.sizes.size() - 1) * parameters.stride + parameters.sizes.back();
        }
        fill_list(parameters, setup.link->source().handle());
        if (command == UctCommand::am) {
            uct_iface_set_am_handler(resource_.interface(), kMessageId, on_message, this, 0);
        }
    }
    ~UctOperation() {
        if (command == UctCommand::am) {
            uct_iface_set_am_handler(resource_.interface(), kMessageId, nullptr, nullptr, 0);
        }
    }
    UctOperation(const UctOperation&) = delete;
    UctOperation& operator=(const UctOperation&) = delete;

    std::byte* source() const { return source_; }
    std::byte* target() const { return target_; }
    std::size_t bytes() const { return bytes_; }
    /// Returns the bytes from the first one sent to the end of the last.
    std::size_t extent() const { return extent_; }
    /// Returns the number of the latest active message, which progress() writes.
    volatile Sequence* received() { return &received_; }

    /// Forgets earlier operations. REQUIRES: everything posted has been flushed.
    void reset() {
        sends_ = 0;
        completion_ = {nullptr, 1, UCS_OK};
    }

    bool failed() const { return refused_ != UCS_OK || resource_.failed(); }
    Status status() const {
        if (resource_.failed()) {
            return resource_.failure_status();
        }
        return refused_ == UCS_OK
                   ? Status()
                   : Status(Code::io_error,
                            resource_.name() + ": cannot send: " + ucs_status_string(refused_));
    }

    void progress() const { uct_worker_progress(worker_); }
    void progress_waiting() const {
        if constexpr (!one_sided) {
            progress();
        }
    }

    /// Posts the operation, progressing until there is room. Returns false when there never will be
    /// (see status()). `completion` is null, or completion() for operations that wait_for_window()
    /// counts.
    bool send(Sequence current, Sequence previous, uct_completion_t* completion) {
        for (;;) {
            const ucs_status_t status = post(current, previous, completion);
            if (status == UCS_OK) [[likely]] {
                if (sends_++ % kSendsPerProgress == 0) {
                    progress();
                }
                return true;
            }
            if (status == UCS_INPROGRESS) {
                ++completion_.count;
                progress();
                return true;
            }
            if (status != UCS_ERR_NO_RESOURCE || resource_.failed()) {
                refused_ = status;
                return false;
            }
            progress();
        }
    }
    uct_completion_t* completion() { return &completion_; }

    /// Returns when fewer counted operations than -O allows are incomplete.
    void wait_for_window() const {
        while (static_cast<unsigned>(completion_.count - 1) >= outstanding_max_ && !failed()) {
            progress();
        }
    }

  private:
    static constexpr std::uint8_t kMessageId = 5;
    /// A send that completes at once progresses only every kSendsPerProgress times.
    static constexpr unsigned kSendsPerProgress = 16;

    /// Sets the list of buffers. The header of a zero-copy message is taken from the beginning of
    /// its first entry.
    void fill_list(const Parameters& parameters, uct_mem_h handle) {
        const bool apart = command == UctCommand::am && layout == UctLayout::zero_copy;
        std::size_t skipped = apart ? header_bytes_ : 0;
        std::size_t at = 0;
        for (const std::size_t size : parameters.sizes) {
            list_.push_back({source_ + at + skipped, size - skipped, handle, 0, 1});
            at += parameters.stride > 0 ? parameters.stride : size;
            skipped = 0;
        }
    }

    ucs_status_t post(Sequence current, Sequence previous, uct_completion_t* completion) {
        if constexpr (command == UctCommand::am) {
            return post_am(current, completion);
        } else if constexpr (command == UctCommand::put) {
            return post_put(completion);
        } else if constexpr (command == UctCommand::get) {
            return post_get(completion);
        } else {
            return bytes_ == sizeof(std::uint32_t)
                       ? post_atomic<std::uint32_t>(current, previous, completion)
                       : post_atomic<std::uint64_t>(current, previous, completion);
        }
    }

    ucs_status_t post_am(Sequence current, uct_completion_t* completion) {
        if constexpr (layout == UctLayout::short_copy) {
            constexpr std::size_t kHeader = sizeof(std::uint64_t);
            return uct_ep_am_short(endpoint_, kMessageId, current, source_ + kHeader,
                                   static_cast<unsigned>(bytes_ - kHeader));
        } else {
            *reinterpret_cast<volatile Sequence*>(source_) = current;
        }
        if constexpr (layout == UctLayout::short_iov) {
            return uct_ep_am_short_iov(endpoint_, kMessageId, list_.data(), list_.size());
        } else if constexpr (layout == UctLayout::buffered_copy) {
            const ssize_t packed = uct_ep_am_bcopy(endpoint_, kMessageId, pack, this, 0);
            return packed >= 0 ? UCS_OK : static_cast<ucs_status_t>(packed);
        } else if constexpr (layout == UctLayout::zero_copy) {
            return uct_ep_am_zcopy(endpoint_, kMessageId, source_,
                                   static_cast<unsigned>(header_bytes_), list_.data(), list_.size(),
                                   0, completion);
        }
    }

    ucs_status_t post_put(uct_completion_t* completion) {
        if constexpr (layout == UctLayout::buffered_copy) {
            const ssize_t packed =
                uct_ep_put_bcopy(endpoint_, pack, this, remote_address_, remote_key_);
            return packed >= 0 ? UCS_OK : static_cast<ucs_status_t>(packed);
        } else if constexpr (layout == UctLayout::zero_copy) {
            return uct_ep_put_zcopy(endpoint_, list_.data(), list_.size(), remote_address_,
                                    remote_key_, completion);
        } else {
            return uct_ep_put_short(endpoint_, source_, static_cast<unsigned>(bytes_),
                                    remote_address_, remote_key_);
        }
    }

    ucs_status_t post_get(uct_completion_t* completion) {
        if constexpr (layout == UctLayout::zero_copy) {
            return uct_ep_get_zcopy(endpoint_, list_.data(), list_.size(), remote_address_,
                                    remote_key_, completion);
        } else {
            return uct_ep_get_bcopy(endpoint_, unpack, this, bytes_, remote_address_, remote_key_,
                                    completion);
        }
    }

    /// Changes the target's value from `previous` to `current`.
    template <typename Word>
    ucs_status_t post_atomic(Sequence current, Sequence previous, uct_completion_t* completion) {
        auto* result = reinterpret_cast<Word*>(source_);
        const auto value = static_cast<Word>(current);
        const auto difference = static_cast<Word>(value - static_cast<Word>(previous));
        if constexpr (command == UctCommand::add) {
            return atomic::add(endpoint_, difference, remote_address_, remote_key_);
        } else if constexpr (command == UctCommand::fetch_add) {
            return atomic::fetch(endpoint_, UCT_ATOMIC_OP_ADD, difference, result, remote_address_,
                                 remote_key_, completion);
        } else if constexpr (command == UctCommand::swap) {
            return atomic::fetch(endpoint_, UCT_ATOMIC_OP_SWAP, value, result, remote_address_,
                                 remote_key_, completion);
        } else {
            return atomic::compare_swap(endpoint_, static_cast<Word>(previous), value, result,
                                        remote_address_, remote_key_, completion);
        }
    }

    static ucs_status_t on_message(void* argument, void* data, std::size_t /*length*/,
                                   unsigned /*flags*/) {
        static_cast<UctOperation*>(argument)->received_ = *static_cast<const Sequence*>(data);
        return UCS_OK;
    }

    static std::size_t pack(void* destination, void* argument) {
        const auto* self = static_cast<const UctOperation*>(argument);
        std::memcpy(destination, self->source_, self->bytes_);
        return self->bytes_;
    }

    static void unpack(void* argument, const void* data, std::size_t length) {
        std::memcpy(static_cast<const UctOperation*>(argument)->source_, data, length);
    }

    const UctResource& resource_;
    uct_worker_h worker_;
    uct_ep_h endpoint_;
    std::byte* source_;
    std::byte* target_;
    std::uint64_t remote_address_;
    uct_rkey_t remote_key_;
    std::size_t bytes_;
    std::size_t extent_;
    std::size_t header_bytes_;
    unsigned outstanding_max_;
    unsigned sends_ = 0;
    std::vector<uct_iov_t> list_;
    uct_completion_t completion_{nullptr, 1, UCS_OK};
    volatile Sequence received_ = 0;
    ucs_status_t refused_ = UCS_OK;
};

} // namespace ucg::perftest
