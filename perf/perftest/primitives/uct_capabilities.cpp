#include "perf/perftest/primitives/uct_capabilities.hpp"

#include <algorithm>
#include <limits>

#include "ucg_coll/base/log.hpp"

namespace ucg::perftest {

namespace {

/// What UCX reports about one operation in one layout.
struct Capability {
    const char* name;
    std::uint64_t flag;
    std::size_t bytes_min;
    std::size_t bytes_max;
    std::size_t entries_max; ///< In a scatter-gather list.
};

constexpr std::size_t kNoList = std::numeric_limits<std::size_t>::max();

Capability am_capability(const uct_iface_attr_t& attributes, UctLayout layout) {
    const auto& am = attributes.cap.am;
    switch (layout) {
    case UctLayout::short_copy:
        return {"am_short", UCT_IFACE_FLAG_AM_SHORT, 0, am.max_short, kNoList};
    case UctLayout::short_iov:
        return {"am_short_iov", UCT_IFACE_FLAG_AM_SHORT, 0, am.max_short, am.max_iov};
    case UctLayout::buffered_copy:
        return {"am_bcopy", UCT_IFACE_FLAG_AM_BCOPY, 0, am.max_bcopy, kNoList};
    case UctLayout::zero_copy: break;
    }
    return {"am_zcopy", UCT_IFACE_FLAG_AM_ZCOPY, am.min_zcopy, am.max_zcopy, am.max_iov};
}

Capability put_capability(const uct_iface_attr_t& attributes, UctLayout layout) {
    const auto& put = attributes.cap.put;
    switch (layout) {
    case UctLayout::short_copy:
    case UctLayout::short_iov:
        return {"put_short", UCT_IFACE_FLAG_PUT_SHORT, 0, put.max_short, kNoList};
    case UctLayout::buffered_copy:
        return {"put_bcopy", UCT_IFACE_FLAG_PUT_BCOPY, 0, put.max_bcopy, kNoList};
    case UctLayout::zero_copy: break;
    }
    return {"put_zcopy", UCT_IFACE_FLAG_PUT_ZCOPY, put.min_zcopy, put.max_zcopy, put.max_iov};
}

Capability get_capability(const uct_iface_attr_t& attributes, UctLayout layout) {
    const auto& get = attributes.cap.get;
    if (layout == UctLayout::zero_copy) {
        return {"get_zcopy", UCT_IFACE_FLAG_GET_ZCOPY, get.min_zcopy, get.max_zcopy, get.max_iov};
    }
    return {"get_bcopy", UCT_IFACE_FLAG_GET_BCOPY, 0, get.max_bcopy, kNoList};
}

Status check_layout(UctCommand command, UctLayout layout) {
    const bool is_short = layout == UctLayout::short_copy || layout == UctLayout::short_iov;
    if (layout == UctLayout::short_iov && command != UctCommand::am && !is_atomic(command)) {
        return failure(Code::invalid_argument, "-D shortiov is for active messages alone");
    }
    if (command == UctCommand::get && is_short) {
        return failure(Code::invalid_argument, "get has no short layout: say -D bcopy or zcopy");
    }
    return {};
}

Status check_sizes(const Parameters& parameters) {
    if (parameters.bytes() < 1) {
        return failure(Code::invalid_argument, "a message of a UCT test has at least 1 byte");
    }
    const std::size_t longest = *std::max_element(parameters.sizes.begin(), parameters.sizes.end());
    if (parameters.stride > 0 && longest > parameters.stride) {
        return failure(Code::invalid_argument,
                       "an entry of {} bytes does not fit into the distance -i {}", longest,
                       parameters.stride);
    }
    return {};
}

Status check_capability(const UctResource& resource, const Capability& needed,
                        const Parameters& parameters) {
    const std::size_t bytes = parameters.bytes();
    if ((resource.attributes().cap.flags & needed.flag) == 0) {
        return failure(Code::unsupported, "{} has no {}", resource.name(), needed.name);
    }
    if (bytes < needed.bytes_min || bytes > needed.bytes_max) {
        return failure(Code::unsupported, "{} of {} takes {} to {} bytes, not {}", needed.name,
                       resource.name(), needed.bytes_min, needed.bytes_max, bytes);
    }
    if (needed.entries_max != kNoList && parameters.sizes.size() > needed.entries_max) {
        return failure(Code::unsupported, "{} of {} takes lists of up to {} entries, not {}",
                       needed.name, resource.name(), needed.entries_max, parameters.sizes.size());
    }
    return {};
}

/// Checks the header, which is the first part of the message.
Status check_header(const UctResource& resource, const Parameters& parameters) {
    const std::size_t header = parameters.uct_header;
    const std::size_t limit = resource.attributes().cap.am.max_hdr;
    if (parameters.uct_layout == UctLayout::short_copy && header != sizeof(std::uint64_t)) {
        return failure(Code::invalid_argument,
                       "the header of a short active message has 8 bytes, not {}", header);
    }
    if (header > parameters.bytes()) {
        return failure(Code::invalid_argument,
                       "a message of {} bytes has no room for its header "
                       "of {}: say a larger -s or a smaller -H",
                       parameters.bytes(), header);
    }
    if (parameters.uct_layout == UctLayout::zero_copy && header > limit) {
        return failure(Code::unsupported, "am_zcopy of {} takes headers of up to {} bytes, not {}",
                       resource.name(), limit, header);
    }
    if (parameters.uct_layout == UctLayout::zero_copy && header > parameters.sizes.front()) {
        return failure(Code::invalid_argument,
                       "the header of {} bytes does not fit into the first entry, of {}", header,
                       parameters.sizes.front());
    }
    return {};
}

Status check_am(const UctResource& resource, const Parameters& parameters) {
    if ((resource.attributes().cap.flags & UCT_IFACE_FLAG_CB_SYNC) == 0) {
        return failure(Code::unsupported, "{} calls back outside of progress", resource.name());
    }
    if (parameters.window < 1 || parameters.window > kWindowMax) {
        return failure(Code::invalid_argument, "the window -W is 1 to {}, not {}", kWindowMax,
                       parameters.window);
    }
    if (parameters.one_sided_idle) {
        return failure(Code::invalid_argument,
                       "with -o nobody would receive active messages; it is for put, get and "
                       "atomic operations");
    }
    return check_header(resource, parameters);
}

Status check_atomic(const UctResource& resource, UctCommand command, const Parameters& parameters) {
    const std::size_t bytes = parameters.bytes();
    if (bytes != sizeof(std::uint32_t) && bytes != sizeof(std::uint64_t)) {
        return failure(Code::invalid_argument, "an atomic operation has 4 or 8 bytes, not {}",
                       bytes);
    }
    const auto& offered = bytes == sizeof(std::uint32_t) ? resource.attributes().cap.atomic32
                                                         : resource.attributes().cap.atomic64;
    struct Needed {
        const char* name;
        std::uint64_t flags;
        uct_atomic_op_t operation;
    };
    const Needed needed = command == UctCommand::add
                              ? Needed{"add", offered.op_flags, UCT_ATOMIC_OP_ADD}
                          : command == UctCommand::fetch_add
                              ? Needed{"fetch-and-add", offered.fop_flags, UCT_ATOMIC_OP_ADD}
                          : command == UctCommand::swap
                              ? Needed{"swap", offered.fop_flags, UCT_ATOMIC_OP_SWAP}
                              : Needed{"compare-and-swap", offered.fop_flags, UCT_ATOMIC_OP_CSWAP};
    if ((needed.flags & UCS_BIT(needed.operation)) == 0) {
        return failure(Code::unsupported, "{} has no atomic {} of {} bits", resource.name(),
                       needed.name, 8 * bytes);
    }
    return {};
}

} // namespace

Status check_uct(const UctResource& resource, UctCommand command, const Parameters& parameters) {
    Status status = check_layout(command, parameters.uct_layout);
    if (status.ok()) {
        status = check_sizes(parameters);
    }
    if (!status.ok() || is_atomic(command)) {
        return status.ok() ? check_atomic(resource, command, parameters) : status;
    }
    const uct_iface_attr_t& attributes = resource.attributes();
    const UctLayout layout = parameters.uct_layout;
    const Capability needed = command == UctCommand::am    ? am_capability(attributes, layout)
                              : command == UctCommand::put ? put_capability(attributes, layout)
                                                           : get_capability(attributes, layout);
    status = check_capability(resource, needed, parameters);
    if (status.ok() && command == UctCommand::am) {
        status = check_am(resource, parameters);
    }
    return status;
}

} // namespace ucg::perftest
