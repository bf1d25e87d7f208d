#include "ucg_coll/transport/shm/sender_memory.hpp"

#include "shm/core_distance.hpp"

namespace ucg::transport {

std::span<const std::byte> SenderMemory::mapped(const shm::RemoteBytes& data,
                                                const Message& message) const {
    if (data.place == 0) {
        return {};
    }
    return {sender_.segment + (data.place - 1) + message.moved, message.bytes - message.moved};
}

Code SenderMemory::fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece) {
    Status status;
    const auto pull = [&] {
        status =
            shm::pull(sender_, data.at(piece.offset), message.data + piece.offset, piece.length);
    };
    if (data.place == 0 && speed_.timed()) {
        speed_.took(piece.length, static_cast<double>(shm::time_of(pull)));
    } else {
        pull();
    }
    if (shm::is_refusal(status)) {
        shm::tell_of_refusal(status);
        give_up_private();
    } else if (status.code() == Code::invalid_argument) { // It was readable when the sender tried.
        log(LogLevel::info, "shared memory: {}; long messages of that process come by the ring",
            status.message());
        give_up_private();
    } else {
        if (!status.ok()) {
            log(LogLevel::error, "shared memory: {}", status.message());
        }
        return status.code();
    }
    return Code::unsupported;
}

bool SenderMemory::still_sent() {
    outdated_ = outdated_ || shm::lost_meanwhile(*lost_);
    return !outdated_;
}

bool SenderMemory::is_gone() {
    constexpr unsigned kLooks = 1024;
    if (++looks_ % kLooks != 0 || !shm::has_ended(sender_)) {
        return false;
    }
    log(LogLevel::error, "shared memory: process {} is gone, with a message half sent",
        sender_.number.process);
    return true;
}

} // namespace ucg::transport
