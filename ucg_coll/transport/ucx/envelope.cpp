#include "ucg_coll/transport/ucx/envelope.hpp"

#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/exhaustion.hpp"

namespace ucg::transport::ucx {

Envelope envelope_of(const RankLink& link, const Message& message) {
    Envelope envelope;
    envelope.group = link.group_there;
    envelope.source = link.group.self;
    envelope.sequence = message.sequence;
    envelope.released = link.consumed;
    envelope.step = message.step;
    envelope.lane = lane_of(message);
    return envelope;
}

Status length_mismatch(const RankLink& link, const Message& message, std::uint64_t bytes) {
    return described([&] {
        const bool sends = message.direction == Direction::send;
        Status status =
            failure(Code::disagreement,
                    "rank {} sent {} bytes where rank {} expected {} (collective {} of group {}, "
                    "step {}): do all ranks call it with equal arguments?",
                    sends ? link.group.self : link.rank, sends ? message.bytes : bytes,
                    sends ? link.rank : link.group.self, sends ? bytes : message.bytes,
                    message.sequence, link.group.id, message.step);
        log(LogLevel::error, "ucx: {}", status.message());
        return status;
    });
}

Status plan_mismatch(const RankLink& link, std::uint32_t sequence) {
    return described([&] {
        Status status = failure(
            Code::disagreement,
            "rank {} sent a message of another algorithm than rank {} expected (collective {} "
            "of group {}): do all ranks call it with equal arguments, and MPI_IN_PLACE at all "
            "of them or none?",
            link.rank, link.group.self, sequence, link.group.id);
        log(LogLevel::error, "ucx: {}", status.message());
        return status;
    });
}

Status transfer_failed(const RankLink& link, std::string_view what, ucs_status_t status) {
    return described([&] {
        return ucx_failure(status,
                           fmt::format("{} rank {} of group {}", what, link.rank, link.group.id));
    });
}

void end_contradicted(RankLink& from, const Envelope& envelope) {
    if (const Message* contradicted = from.posted.contradicting(key_of(envelope))) {
        Message* message = from.posted.take(key_of(*contradicted));
        from.group.complete(*message, plan_mismatch(from, envelope.sequence));
    }
}

} // namespace ucg::transport::ucx
