#include "ucg_coll/graph/print.hpp"

#include <fmt/format.h>

namespace ucg::graph {

std::string slice_text(const Slice& slice, Rank self) {
    std::string text(name(slice.buffer));
    if (slice.owner != self) {
        text += fmt::format("@{}", slice.owner);
    }
    text += fmt::format("[{}:{}]", slice.offset, slice.end());
    switch (slice.stride) {
    case Stride::fixed: break;
    case Stride::advance: text += '+'; break;
    case Stride::rotate: text += '%'; break;
    }
    return text;
}

std::string op_text(const Schedule& schedule, const Op& op) {
    const auto slice = [&](const Slice& s) { return slice_text(s, schedule.rank); };
    switch (op.kind) {
    case OpKind::send: return fmt::format("send to {} {}", op.peer, slice(op.source));
    case OpKind::recv: return fmt::format("recv from {} {}", op.peer, slice(op.target));
    case OpKind::copy: return fmt::format("copy {} -> {}", slice(op.source), slice(op.target));
    case OpKind::signal: return fmt::format("signal {}", op.peer);
    case OpKind::await: return fmt::format("await {}", op.peer);
    case OpKind::publish: return fmt::format("publish {}", slice(op.source));
    case OpKind::share: return fmt::format("share {}", slice(op.source));
    case OpKind::reduce: break;
    }
    std::string text = "reduce";
    for (std::uint32_t i = 0; i < op.operand_count; ++i) {
        text += ' ' + slice(schedule.operands[op.first_operand + i]);
    }
    return text + " -> " + slice(op.target);
}

} // namespace ucg::graph
