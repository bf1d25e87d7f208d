// One operation of a UCP test, started and awaited repeatedly: the part that all measured loops
// have in common. Command and variant are template arguments, so that a loop makes no indirect
// calls but those into UCX.
#pragma once

#include <cstring>
#include <vector>

#include "perf/perftest/primitives/ucp_link.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// The operation that a test repeats.
enum class UcpCommand { tag, tag_sync, put, get, add, fetch_add, swap, compare_swap, stream, am };

constexpr bool is_atomic(UcpCommand command) {
    return command >= UcpCommand::add && command <= UcpCommand::compare_swap;
}
/// Returns whether the operation reaches the peer's memory without a receive.
constexpr bool is_one_sided(UcpCommand command) {
    return command >= UcpCommand::put && command <= UcpCommand::compare_swap;
}

/// How the peer detects an operation, where there is a choice.
enum class UcpVariant : unsigned {
    plain = 0,
    wildcard_tag = 1,           ///< -C
    probe = 2,                  ///< -U
    wildcard_tag_and_probe = 3, ///< -C and -U
    receive_data = 4,           ///< For streams: -r recv_data
    idle = 8,                   ///< For one-sided operations: -o
};

/// The objects that a UCP test needs.
struct UcpSetup {
    std::unique_ptr<UcpLink> link;
    Parameters parameters;
    unsigned outstanding_max = 1;
    Rank rank = 0;
};

template <UcpCommand command, TestKind kind, UcpVariant variant>
class UcpOperation {
  public:
    explicit UcpOperation(const UcpSetup& setup)
        : link_(*setup.link), worker_(link_.worker()), endpoint_(link_.endpoint()),
          sleeps_(setup.parameters.sleeps), bytes_(setup.parameters.bytes()),
          header_(setup.parameters.ucp_header),
          outstanding_max_(static_cast<int>(setup.outstanding_max)) {
        const Parameters& parameters = setup.parameters;
        remote_address_ = link_.remote_address();
        remote_key_ = link_.remote_key();
        source_ = fill(send_, parameters, parameters.send_layout, link_.source());
        target_ = fill(receive_, parameters, parameters.receive_layout, link_.target());
        if constexpr (is_one_sided(command)) {
            source_last_ = last_byte(link_.source());
            target_last_ = last_byte(link_.target());
        }
        send_.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK;
        send_.cb.send = on_sent;
        if constexpr (kind == TestKind::stream) {
            send_.op_attr_mask |= UCP_OP_ATTR_FLAG_MULTI_SEND;
        }
        if constexpr (command == UcpCommand::am) {
            receive_.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
            receive_.cb.recv_am = on_message_data;
            note(link_.set_am_handler(kMessageId, on_message, this, UCP_AM_FLAG_WHOLE_MSG));
        } else if constexpr (kTag) {
            receive_.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK;
            receive_.cb.recv = on_received;
        } else if constexpr (is_atomic(command)) {
            send_.datatype = ucp_dt_make_contig(bytes_);
        }
        if constexpr (is_atomic(command) && command != UcpCommand::add) {
            send_.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            send_.reply_buffer = source_.buffer;
        }
    }
    ~UcpOperation() {
        if constexpr (command == UcpCommand::am) {
            static_cast<void>(link_.set_am_handler(kMessageId, nullptr, nullptr, 0));
        }
    }
    UcpOperation(const UcpOperation&) = delete;
    UcpOperation& operator=(const UcpOperation&) = delete;

    std::size_t bytes() const { return bytes_; }

    bool failed() const { return refused_ != UCS_OK || link_.failed(); }
    Status status() const {
        if (link_.failed()) {
            return link_.failure_status();
        }
        return refused_ == UCS_OK
                   ? Status()
                   : Status(Code::io_error, std::string("UCP: ") + ucs_status_string(refused_));
    }

    /// Sets the last byte of both buffers to this number. A put transfers that byte, and the peer
    /// waits for it.
    void reset(std::uint8_t number) {
        if constexpr (is_one_sided(command)) {
            *source_last_ = number;
            *target_last_ = number;
        }
    }

    /// Starts the operation once fewer than -O are incomplete.
    bool send(std::uint8_t number) {
        wait_for_sends(outstanding_max_);
        if constexpr (command == UcpCommand::put && kind == TestKind::ping_pong) {
            *source_last_ = number;
        }
        return started(post(&zero_, send_), sends_);
    }

    /// Prepares to receive one message; where the command needs it, waits for the message instead.
    bool receive(std::uint8_t number) {
        if constexpr (kTag) {
            return receive_tag();
        } else if constexpr (command == UcpCommand::am) {
            ++receives_;
            return true;
        } else if constexpr (command == UcpCommand::stream) {
            return variant == UcpVariant::receive_data ? receive_stream_data() : receive_stream();
        } else if constexpr (command == UcpCommand::put) {
            return kind == TestKind::stream || wait_for_put(number);
        } else {
            progress_waiting();
            return !failed();
        }
    }

    /// Return when fewer than `most` operations are incomplete.
    bool wait_for_sends(int most) {
        while (sends_ >= most && !failed()) {
            progress();
        }
        return !failed();
    }
    bool wait_for_receives(int most) {
        while (receives_ >= most && !failed()) {
            progress_waiting();
        }
        return !failed();
    }

    /// Ends a stream of which only the sender knows the end: the number arrives behind all other
    /// bytes.
    bool send_last(std::uint8_t number) {
        if constexpr (is_one_sided(command) && command != UcpCommand::get) {
            note_status(ucp_worker_fence(worker_));
            std::uint64_t operand = 0;
            std::memcpy(reinterpret_cast<std::byte*>(&operand) + (bytes_ - 1) % sizeof(operand),
                        &number, 1);
            ucp_request_param_t parameters = send_;
            if constexpr (command == UcpCommand::put) {
                *source_last_ = number;
            } else if constexpr (command == UcpCommand::compare_swap) {
                parameters.reply_buffer = &operand;
            }
            const bool compares = command == UcpCommand::compare_swap;
            return started(post(compares ? &zero_ : &operand, parameters), sends_) &&
                   wait_for_sends(1);
        }
        return wait_for_sends(1);
    }
    bool wait_for_last(std::uint8_t number) {
        return command == UcpCommand::get || !is_one_sided(command) || wait_for_put(number);
    }

  private:
    static constexpr bool kTag = command == UcpCommand::tag || command == UcpCommand::tag_sync;
    static constexpr bool has(UcpVariant bit) {
        return (static_cast<unsigned>(variant) & static_cast<unsigned>(bit)) != 0;
    }
    static constexpr bool kProbes = has(UcpVariant::probe);
    static constexpr bool kWildcard = has(UcpVariant::wildcard_tag);
    static constexpr bool kIdle = has(UcpVariant::idle);
    static constexpr ucp_tag_t kTagValue = 0x7563672D70657266;
    static constexpr ucp_tag_t kTagMask = kWildcard ? 0 : ~ucp_tag_t{0};
    static constexpr unsigned kMessageId = 1;

    /// Buffer and count as UCP takes them.
    struct Buffer {
        void* buffer = nullptr;
        std::size_t count = 0;
        std::vector<ucp_dt_iov_t> list;
    };

    Buffer fill(ucp_request_param_t& request, const Parameters& parameters, UcpLayout layout,
                const UcpMemory& memory) {
        request.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_USER_DATA;
        request.datatype = ucp_dt_make_contig(1);
        request.user_data = this;
        if (parameters.memory_handle) {
            request.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
            request.memh = memory.handle();
        }
        Buffer result{memory.data(), bytes_, {}};
        if (layout == UcpLayout::scatter_gather) {
            request.datatype = ucp_dt_make_iov();
            std::size_t at = 0;
            for (const std::size_t size : parameters.sizes) {
                result.list.push_back({memory.data() + at, size});
                at += parameters.stride > 0 ? parameters.stride : size;
            }
            result.buffer = result.list.data();
            result.count = result.list.size();
        }
        return result;
    }

    volatile std::uint8_t* last_byte(const UcpMemory& memory) const {
        return reinterpret_cast<volatile std::uint8_t*>(memory.data() + bytes_ - 1);
    }

    void progress() {
        if (sleeps_) [[unlikely]] {
            if (ucp_worker_progress(worker_) == 0) {
                note_status(ucp_worker_wait(worker_));
            }
        } else {
            ucp_worker_progress(worker_);
        }
    }
    void progress_waiting() {
        if constexpr (!kIdle) {
            progress();
        }
    }

    void note_status(ucs_status_t status) {
        if (status != UCS_OK) [[unlikely]] {
            refused_ = status;
        }
    }
    void note(const Status& status) { note_status(status.ok() ? UCS_OK : UCS_ERR_IO_ERROR); }

    /// Counts the operation if it is not complete yet. Returns false if UCX refused it.
    bool started(ucs_status_ptr_t request, int& count) {
        if (UCS_PTR_IS_PTR(request)) {
            ++count;
            return true;
        }
        note_status(UCS_PTR_STATUS(request));
        return request == nullptr;
    }

    /// `operand` is for atomic operations; compare-and-swap swaps in the value at the reply buffer.
    ucs_status_ptr_t post(const std::uint64_t* operand, const ucp_request_param_t& parameters) {
        if constexpr (command == UcpCommand::tag) {
            return ucp_tag_send_nbx(endpoint_, source_.buffer, source_.count, kTagValue,
                                    &parameters);
        } else if constexpr (command == UcpCommand::tag_sync) {
            return ucp_tag_send_sync_nbx(endpoint_, source_.buffer, source_.count, kTagValue,
                                         &parameters);
        } else if constexpr (command == UcpCommand::stream) {
            return ucp_stream_send_nbx(endpoint_, source_.buffer, source_.count, &parameters);
        } else if constexpr (command == UcpCommand::am) {
            return ucp_am_send_nbx(endpoint_, kMessageId, header_.data(), header_.size(),
                                   source_.buffer, source_.count, &parameters);
        } else if constexpr (command == UcpCommand::put) {
            return ucp_put_nbx(endpoint_, source_.buffer, source_.count, remote_address_,
                               remote_key_, &parameters);
        } else if constexpr (command == UcpCommand::get) {
            return ucp_get_nbx(endpoint_, source_.buffer, source_.count, remote_address_,
                               remote_key_, &parameters);
        } else {
            constexpr ucp_atomic_op_t kWhich = command == UcpCommand::swap ? UCP_ATOMIC_OP_SWAP
                                               : command == UcpCommand::compare_swap
                                                   ? UCP_ATOMIC_OP_CSWAP
                                                   : UCP_ATOMIC_OP_ADD;
            return ucp_atomic_op_nbx(endpoint_, kWhich, operand, 1, remote_address_, remote_key_,
                                     &parameters);
        }
    }

    bool receive_tag() {
        wait_for_receives(outstanding_max_);
        if constexpr (kProbes) {
            ucp_tag_recv_info_t info;
            while (ucp_tag_probe_nb(worker_, kTagValue, kTagMask, 0, &info) == nullptr &&
                   !failed()) {
                progress_waiting();
            }
        }
        return started(ucp_tag_recv_nbx(worker_, target_.buffer, target_.count, kTagValue, kTagMask,
                                        &receive_),
                       receives_);
    }

    /// Waits for data in memory that UCP owns, and releases it.
    bool receive_stream_data() {
        std::size_t total = 0;
        while (total < bytes_ && !failed()) {
            progress_waiting();
            std::size_t length = 0;
            const ucs_status_ptr_t data = ucp_stream_recv_data_nb(endpoint_, &length);
            if (UCS_PTR_IS_PTR(data)) [[likely]] {
                total += length;
                ucp_stream_data_release(endpoint_, data);
            } else if (data != nullptr) {
                note_status(UCS_PTR_STATUS(data));
            }
        }
        return !failed();
    }

    /// Receives by parts, since a stream delivers what it has; only lists must be filled in one
    /// call.
    bool receive_stream() {
        const bool list = !target_.list.empty();
        ucp_request_param_t parameters = receive_;
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = list ? UCP_STREAM_RECV_FLAG_WAITALL : 0;
        for (std::size_t total = 0; total < bytes_ && !failed();) {
            std::size_t length = 0;
            void* at = list ? target_.buffer : static_cast<std::byte*>(target_.buffer) + total;
            const ucs_status_ptr_t request = ucp_stream_recv_nbx(
                endpoint_, at, list ? target_.count : bytes_ - total, &length, &parameters);
            if (UCS_PTR_IS_PTR(request)) {
                length = finish_stream(request);
            } else {
                note_status(UCS_PTR_STATUS(request));
            }
            total += length;
        }
        return !failed();
    }
    std::size_t finish_stream(ucs_status_ptr_t request) {
        std::size_t length = 0;
        ucs_status_t status = ucp_stream_recv_request_test(request, &length);
        while (status == UCS_INPROGRESS) {
            progress_waiting();
            status = ucp_stream_recv_request_test(request, &length);
        }
        ucp_request_free(request);
        note_status(status);
        return length;
    }

    bool wait_for_put(std::uint8_t number) {
        const volatile std::uint8_t* const last = target_last_;
        while (*last != number && !failed()) {
            progress_waiting();
        }
        return !failed();
    }

    static void on_sent(void* request, ucs_status_t status, void* self) {
        auto* operation = static_cast<UcpOperation*>(self);
        operation->note_status(status);
        --operation->sends_;
        ucp_request_free(request);
    }
    static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* /*info*/,
                            void* self) {
        auto* operation = static_cast<UcpOperation*>(self);
        operation->note_status(status);
        --operation->receives_;
        ucp_request_free(request);
    }
    static void on_message_data(void* request, ucs_status_t status, std::size_t /*length*/,
                                void* self) {
        auto* operation = static_cast<UcpOperation*>(self);
        operation->note_status(status);
        --operation->receives_;
        ucp_request_free(request);
    }

    static ucs_status_t on_message(void* self, const void* /*header*/, std::size_t /*header_bytes*/,
                                   void* data, std::size_t /*length*/,
                                   const ucp_am_recv_param_t* parameters) {
        auto* operation = static_cast<UcpOperation*>(self);
        if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
            --operation->receives_;
            return UCS_OK;
        }
        const Buffer& target = operation->target_;
        const ucs_status_ptr_t request = ucp_am_recv_data_nbx(
            operation->worker_, data, target.buffer, target.count, &operation->receive_);
        operation->note_status(UCS_PTR_IS_PTR(request) ? UCS_OK : UCS_PTR_STATUS(request));
        return UCS_INPROGRESS;
    }

    const UcpLink& link_;
    ucp_worker_h worker_;
    ucp_ep_h endpoint_;
    bool sleeps_;
    std::size_t bytes_;
    std::vector<std::byte> header_;
    int sends_ = 0;
    int receives_ = 0; ///< Below zero when messages arrive before they are expected.
    int outstanding_max_;
    ucs_status_t refused_ = UCS_OK;
    std::uint64_t zero_ = 0;
    std::uint64_t remote_address_ = 0;
    ucp_rkey_h remote_key_ = nullptr;
    volatile std::uint8_t* source_last_ = nullptr;
    volatile std::uint8_t* target_last_ = nullptr;
    Buffer source_;
    Buffer target_;
    ucp_request_param_t send_{};
    ucp_request_param_t receive_{};
};

} // namespace ucg::perftest
