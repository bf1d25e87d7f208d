// What travels in front of every message. Both ends are of one build on machines of one byte order,
// as UCX itself demands of the hosts it connects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport::ucx {

/// What an envelope is in front of.
enum class Kind : std::uint8_t {
    data,   ///< A message of a group.
    empty,  ///< A message without bytes, by rendezvous of one: UCX 1.13 loses memory at each
            ///< rendezvous of none.
    credit, ///< No message: only `released` matters.
    // Rendezvous that the receiver begins, each with a LongHeader.
    request_to_send,  ///< No data: a long message waits to be received.
    ready_to_receive, ///< No data: the receive of a long message is posted. It also answers a
                      ///< request that does not fit, and then may name a message of another plan.
    declined,         ///< No data: answers a request to send for a group that was given up.
    fragment,         ///< A part of a long message that the receiver is ready for.
};

/// Header of everything that belongs to a group. Its first eight bytes are the header word of
/// uct_ep_am_short.
struct Envelope {
    std::uint32_t group = 0; ///< The receiver's number for the group.
    Rank source = kNoRank;
    std::uint32_t sequence = 0;
    std::uint32_t released = 0; ///< Credits that `source` has given back so far, modulo 2^32.
    std::uint16_t step = 0;
    std::uint16_t lane = 0; ///< lane_of() the message.
    Kind kind = Kind::data;
};
static_assert(sizeof(Envelope) == 24 && std::is_trivially_copyable_v<Envelope>);

/// Header of what belongs to a long message whose rendezvous the receiver begins.
struct LongHeader {
    Envelope envelope;
    /// fragment: the offset of its data in the message; otherwise the length of the message. In
    /// bytes.
    std::uint64_t bytes = 0;
};
static_assert(sizeof(LongHeader) == 32 && std::is_trivially_copyable_v<LongHeader>);

enum class Control : std::uint32_t {
    lane_answer, ///< "Your greeting on the short lane came to me"; may carry a LineMemory.
    // Where the short lane connects endpoint to endpoint.
    lane_offer,      ///< "Here is an endpoint for you"; carries a LaneOffer.
    lane_acceptance, ///< "Here is mine, connected to the one you offered"; carries its address.
    lane_refusal,    ///< "I do not take your offer."
    lane_withdrawal, ///< "What I offered, and you have accepted, does not work."
    bye,             ///< "I shall send no more"; carries the sender's UCP address.
    bye_answer,      ///< "I have taken all that you sent."
    start_over, ///< "I could not connect to you at first: UCX may wait for my answer for ever."
    probe,      ///< Tells nothing; that it goes out shows its sender that the connection stands.
};

/// Is such a message about the short lane? The others are about a connection of UCP, and say
/// nothing about the next connection.
inline bool is_about_lane(Control what) {
    return what == Control::lane_answer || what == Control::lane_offer ||
           what == Control::lane_acceptance || what == Control::lane_refusal ||
           what == Control::lane_withdrawal;
}

/// Header of what belongs to two processes and to no group.
struct ControlHeader {
    Control what = Control::bye;
    std::uint32_t detail = 0; ///< bye: 1 when a second one comes by the short lane.
                              ///< lane_*: the attempt of who greets or offers.
    std::uint64_t source = 0; ///< Process ids.
    std::uint64_t target = 0;
};
static_assert(sizeof(ControlHeader) == 24 && std::is_trivially_copyable_v<ControlHeader>);

/// Ids of UCP's active messages.
inline constexpr unsigned kUcpData = 0;
inline constexpr unsigned kUcpControl = 1;

/// Ids of UCT's active messages, on the short lane.
inline constexpr std::uint8_t kLaneData = 0;
inline constexpr std::uint8_t kLaneNotice = 1;

/// What two processes tell each other on the short lane. `source` is UCT's header word.
struct LaneNotice {
    enum class What : std::uint16_t {
        greeting, ///< "Tell me by UCP if you are `target`", with the same attempt.
        bye,      ///< "This is the last that I send here."
        taken,    ///< "So many of your lines I have taken": `attempt`.
    };
    std::uint64_t source = 0; ///< Process ids.
    std::uint64_t target = 0;
    What what = What::greeting;
    std::uint16_t to = 0; ///< greeting: the index of the target's interface that it is sent to.
    std::uint32_t attempt = 0; ///< Tells the routes that were tried apart.
};
static_assert(sizeof(LaneNotice) == 24 && std::is_trivially_copyable_v<LaneNotice>);

/// Bytes of the longest fragment: with its headers it is no longer than what UCX's TCP takes in at
/// once (UCX_TCP_RX_SEG_SIZE, 64 KiB), so that the receiver copies it once, to where it belongs.
inline constexpr std::uint64_t kFragmentBytes = 60 << 10;

/// Bytes that a receiver keeps for each eager message that arrives before its receive is posted.
/// The data of a short message, of at most kEarlyShortBytes, has room in them; that of a longer one
/// is kept beside them.
inline constexpr std::uint32_t kEarlyBytes = 192;
inline constexpr std::uint32_t kEarlyShortBytes = 128;

/// Returns what an eager message takes from the window: the bytes that it may occupy at its
/// receiver.
inline std::uint32_t credit_cost(std::uint64_t bytes) {
    return kEarlyBytes + (bytes > kEarlyShortBytes ? static_cast<std::uint32_t>(bytes) : 0);
}

} // namespace ucg::transport::ucx
