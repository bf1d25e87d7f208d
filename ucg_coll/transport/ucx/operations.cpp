#include "ucg_coll/transport/ucx/operations.hpp"

#include <algorithm>

namespace ucg::transport::ucx {

Operation& Operations::take() {
    if (free_ == nullptr) {
        free_ = &all_.emplace_back(*this);
    }
    Operation& operation = *free_;
    free_ = operation.next;
    operation.active = true;
    operation.is_control = false;
    operation.credit = false;
    operation.header = {};
    ++active_;
    return operation;
}

Operation& Operations::take_send(Peer& peer) {
    Operation& operation = take();
    operation.peer = &peer;
    operation.connection = peer.connection;
    return operation;
}

void Operations::release(Operation& operation) {
    operation.active = false;
    --active_;
    operation.peer = nullptr;
    operation.link = nullptr;
    operation.message = nullptr;
    operation.next = free_;
    free_ = &operation;
}

void Operations::finish(Operation& operation, ucs_status_t status) {
    end_.operation_ended(operation, status);
    release(operation);
}

ucs_status_ptr_t Operations::put(Operation& operation, unsigned id,
                                 std::span<const std::byte> header, std::span<const std::byte> data,
                                 std::uint32_t flags) {
    ucp_request_param_t parameters;
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.flags = flags;
    parameters.cb.send = on_sent;
    parameters.user_data = &operation;
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(operation.peer->endpoint, id, header.data(), header.size(), data.data(),
                        data.size(), &parameters);
    operation.peer->carried = operation.peer->carried || request == nullptr;
    return request;
}

void Operations::put_word(Operation& operation, unsigned id, std::span<const std::byte> header,
                          std::span<const std::byte> data) {
    const Peer& peer = *operation.peer;
    const ucs_status_ptr_t request = put(operation, id, header, data, UCP_AM_SEND_FLAG_EAGER);
    if (!UCS_PTR_IS_PTR(request)) {
        release(operation);
        note_loss(peer, UCS_PTR_RAW_STATUS(request));
    }
}

void Operations::pull(Operation& operation, ucp_worker_h worker, void* handle,
                      std::uint64_t bytes) {
    ucp_request_param_t parameters;
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.recv_am = on_pulled;
    parameters.user_data = &operation;
    const ucs_status_ptr_t request = ucp_am_recv_data_nbx(
        worker, handle, bytes == 0 ? &operation.nothing : operation.message->data,
        bytes == 0 ? 1 : bytes, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
        finish(operation, UCS_PTR_RAW_STATUS(request));
    }
}

void Operations::note_loss(const Peer& peer, ucs_status_t status) {
    if (status == UCS_ERR_NO_MEMORY && peer.failure.ok()) {
        state_.note_loss();
    }
}

bool Operations::sends_to(const Peer& peer) const {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const Operation& each) { return each.active && each.peer == &peer; });
}

void Operations::give_up(Operation& operation) {
    GroupState& group = operation.link->group;
    --group.in_flight;
    group.complete(*operation.message, failure_of(operation.link->peer, [] {
        return Status(Code::timed_out, "a message did not end in time");
    }));
    operation.message = nullptr;
    operation.link = nullptr;
}

void Operations::on_sent(void* request, ucs_status_t status, void* operation) {
    Operation& ended = *static_cast<Operation*>(operation);
    ended.owner.finish(ended, status);
    ucp_request_free(request);
}

void Operations::on_pulled(void* request, ucs_status_t status, std::size_t /*bytes*/,
                           void* operation) {
    Operation& ended = *static_cast<Operation*>(operation);
    ended.owner.finish(ended, status);
    ucp_request_free(request);
}

} // namespace ucg::transport::ucx
