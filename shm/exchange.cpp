#include "shm/exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <poll.h>
#include <sys/resource.h>

#include "shm/door.hpp"
#include "shm/heap.hpp"
#include "shm/mappings.hpp"

namespace ucg::shm {
namespace {

/// After so long the process of a pair calls that has the higher token.
constexpr auto kSecondCall = std::chrono::milliseconds(100);
constexpr std::size_t kCallsMax = 8;    // Each call has a descriptor in flight.
constexpr std::size_t kFlightShare = 4; // All calls may use 1/4 of the descriptors in flight.

/// Returns how many calls each of `peers` processes may make at a time, so that their descriptors
/// in flight do not reach what the system grants to all processes of an ordinary user:
/// RLIMIT_NOFILE.
std::size_t calls_at_a_time(std::size_t peers) {
    rlimit files = {};
    const bool limited = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
    const std::size_t all = limited ? files.rlim_cur / kFlightShare : peers * kCallsMax;
    return std::clamp<std::size_t>(all / (peers + 1), 1, kCallsMax);
}

} // namespace

/// A peer whose segment is missed.
struct DescriptorExchange::Wanted {
    HeapAddress address;
    Clock::time_point since;      // When it was missed first.
    Clock::time_point not_before; // When it may be called again.
    Descriptor socket = {};       // Connected, and a greeting was sent; the answer is due.
    unsigned wanters = 1;         // Attachments that miss it.
    bool ready = false;           // The socket has news.
    Status failure = {};          // Why it is not called any more; ok if it is.
};

/// A connection that was accepted. Its letter may have come and not be answered yet, while too many
/// descriptors are in flight.
struct DescriptorExchange::Caller {
    Descriptor socket;
    Letter letter;
    bool ready = true; // The socket has news, as at first: a caller greets at once.
};

DescriptorExchange::DescriptorExchange(Heap& heap) : heap_(heap) {}

DescriptorExchange::~DescriptorExchange() = default;

DescriptorExchange::Wanted* DescriptorExchange::find(const Token& token) {
    const auto found = std::find_if(wanted_.begin(), wanted_.end(), [&](const Wanted& peer) {
        return peer.address.token == token;
    });
    return found == wanted_.end() ? nullptr : &*found;
}

void DescriptorExchange::want(std::span<const HeapAddress> peers) {
    const std::size_t calls_max = calls_at_a_time(peers.size());
    calls_max_ = wanted_.empty() ? calls_max : std::min(calls_max_, calls_max);
    for (const HeapAddress& peer : peers) {
        if (Wanted* const known = find(peer.token)) {
            ++known->wanters;
        } else if (!heap_.attached(peer.token)) {
            const auto now = Clock::now();
            wanted_.push_back({.address = peer, .since = now, .not_before = now});
        }
    }
}

void DescriptorExchange::forget(std::span<const HeapAddress> peers) {
    for (const HeapAddress& peer : peers) {
        if (Wanted* const known = find(peer.token)) {
            --known->wanters;
        }
    }
    drop_finished();
}

Status DescriptorExchange::failure_of(std::span<const HeapAddress> peers) const {
    Status cause;
    for (const Wanted& wanted : wanted_) {
        const bool asked = std::any_of(peers.begin(), peers.end(), [&](const HeapAddress& peer) {
            return peer.token == wanted.address.token;
        });
        if (asked && wanted.failure.ok()) {
            return {};
        }
        if (asked && (cause.ok() || cause.code() == Code::unreachable)) {
            cause = wanted.failure;
        }
    }
    return cause;
}

/// Fails if the program has closed the own descriptors, which are needed to attach to any new peer.
Status DescriptorExchange::own_descriptors() const {
    if (heap_.door_.get() < 0 || heap_.segment_->descriptor() < 0) {
        return Status(Code::io_error,
                      "shared memory: the program has closed descriptors that it did not open "
                      "(closefrom), the node heap's among them: processes that it has not met yet "
                      "cannot map it");
    }
    return {};
}

Status DescriptorExchange::step(Clock::time_point until) {
    const std::size_t failures = failures_;
    Status status = own_descriptors();
    if (status.ok()) {
        status = call_missing();
    }
    if (status.ok()) {
        wait(failures_ == failures ? until : Clock::now());
        status = accept_callers();
    }
    if (status.ok()) {
        status = hear_callers();
    }
    if (status.ok()) {
        hear_answers();
    }
    drop_finished();
    return status;
}

/// Returns whether this process, and not the peer, is to call, or is to call as well by now.
bool DescriptorExchange::my_turn(const Wanted& peer) const {
    return heap_.address_.token < peer.address.token || Clock::now() - peer.since >= kSecondCall;
}

bool DescriptorExchange::may_call(const Wanted& peer) const {
    return !peer.socket.valid() && peer.failure.ok();
}

void DescriptorExchange::give_up(Wanted& peer, Status failure) {
    peer.failure = std::move(failure);
    peer.socket.reset();
    ++failures_;
}

/// Returns how many peers were called and have not answered yet.
std::size_t DescriptorExchange::calls() const {
    return static_cast<std::size_t>(std::count_if(
        wanted_.begin(), wanted_.end(), [](const Wanted& peer) { return peer.socket.valid(); }));
}

/// Calls peers that are missed. Fails if there are no descriptors left.
Status DescriptorExchange::call_missing() {
    std::size_t room = calls_max_ - std::min(calls(), calls_max_);
    for (std::size_t i = 0; i < wanted_.size() && room > 0; ++i) {
        Wanted& peer = wanted_[i];
        if (may_call(peer) && my_turn(peer) && Clock::now() >= peer.not_before) {
            if (Status status = call(peer); !status.ok()) {
                return status;
            }
            room -= peer.socket.valid() ? 1 : 0;
        }
    }
    return {};
}

Status DescriptorExchange::call(Wanted& peer) {
    peer.not_before = Clock::now() + kDoorPause;
    Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    if (!connect_to(socket.get(), peer.address.token)) {
        if (errno != EAGAIN && errno != EINTR) { // Its backlog is not merely full.
            give_up(peer, nobody_there());
        }
        return {};
    }
    if (!same_user(socket.get())) {
        give_up(peer,
                Status(Code::unreachable, "shared memory: a node heap belongs to another user"));
    } else if (greet(socket.get(), peer.address.key) == Sent::yes) {
        peer.socket = std::move(socket);
    }
    return {};
}

Sent DescriptorExchange::greet(int socket, const Token& key) const {
    Greeting greeting;
    greeting.to = key;
    greeting.from = heap_.address_;
    return send_letter(socket, greeting, heap_.segment_->descriptor());
}

/// Returns when something is to be tried again of which no socket tells; `until` if nothing is
/// before.
DescriptorExchange::Clock::time_point
DescriptorExchange::next_attempt(Clock::time_point until) const {
    const auto unanswered = [](const Caller& caller) {
        return caller.letter.kind != Letter::Kind::nothing_yet;
    };
    if (std::any_of(callers_.begin(), callers_.end(), unanswered)) {
        until = std::min(until, Clock::now() + kDoorPause);
    }
    const bool room = calls() < calls_max_;
    for (const Wanted& peer : wanted_) {
        if (room && may_call(peer)) {
            until = std::min(until, my_turn(peer) ? peer.not_before : peer.since + kSecondCall);
        }
    }
    return until;
}

/// Sleeps until a socket has news, or it is time to try something again. Notes which sockets have
/// news: to ask all of them would take a system call for each.
void DescriptorExchange::wait(Clock::time_point until) {
    std::vector<pollfd> sockets;
    std::vector<bool*> notes;
    const auto watch = [&](int socket, bool& ready) {
        ready = false;
        sockets.push_back({socket, POLLIN, 0});
        notes.push_back(&ready);
    };
    bool called = false;
    if (callers_.size() < kCallersMax) {
        watch(heap_.door_.number(), called);
    }
    for (Caller& caller : callers_) {
        if (caller.letter.kind == Letter::Kind::nothing_yet) {
            watch(caller.socket.number(), caller.ready);
        }
    }
    for (Wanted& peer : wanted_) {
        if (peer.socket.valid()) {
            watch(peer.socket.number(), peer.ready);
        }
    }
    const int events =
        ::poll(sockets.data(), sockets.size(), milliseconds_until(next_attempt(until)));
    for (std::size_t i = 0; events > 0 && i < sockets.size(); ++i) {
        *notes[i] = sockets[i].revents != 0;
    }
}

Status DescriptorExchange::accept_callers() {
    while (callers_.size() < kCallersMax) {
        Descriptor caller = next_caller(heap_.door_.get());
        if (!caller.valid()) {
            const bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
            return short_of && callers_.empty() ? socket_failure("accept") : Status();
        }
        if (same_user(caller.get())) {
            callers_.push_back({std::move(caller), {}, true});
        }
    }
    return {};
}

Status DescriptorExchange::hear_callers() {
    for (Caller& caller : callers_) {
        if (Status status = hear(caller); !status.ok()) {
            return status;
        }
    }
    return {};
}

/// Answers a caller and then maps its segment, in this order: a caller to whom the answer could not
/// be delivered may have to be answered again.
Status DescriptorExchange::hear(Caller& caller) {
    if (caller.letter.kind == Letter::Kind::nothing_yet && caller.ready) {
        caller.letter = Letter::receive(caller.socket.get());
    }
    const Greeting& greeting = caller.letter.greeting;
    switch (caller.letter.kind) {
    case Letter::Kind::nothing_yet: return {};
    case Letter::Kind::no_descriptor: return no_descriptor_left();
    case Letter::Kind::closed: caller.socket.reset(); return {};
    case Letter::Kind::greeting: break;
    }
    if (greeting.to != heap_.address_.key || !caller.letter.file.valid()) { // A stranger.
        caller.socket.reset();
        return {};
    }
    switch (greet(caller.socket.get(), greeting.from.key)) {
    case Sent::later: return {};
    case Sent::hung_up: break; // Our own call brought it what it missed, or it is dead.
    case Sent::yes:
        if (Status status = take(caller.letter); !status.ok()) {
            return status;
        }
        break;
    }
    caller.socket.reset();
    return {};
}

void DescriptorExchange::hear_answers() {
    for (Wanted& peer : wanted_) {
        if (peer.socket.valid() && peer.ready) {
            if (Status status = hear_answer(peer); !status.ok()) {
                give_up(peer, std::move(status));
            }
        }
    }
}

Status DescriptorExchange::hear_answer(Wanted& peer) {
    Letter letter = Letter::receive(peer.socket.get());
    switch (letter.kind) {
    case Letter::Kind::nothing_yet: return {};
    case Letter::Kind::no_descriptor: return no_descriptor_left();
    case Letter::Kind::closed: peer.socket.reset(); return {}; // A dead process refuses then.
    case Letter::Kind::greeting: break;
    }
    if (letter.greeting.from != peer.address || letter.greeting.to != heap_.address_.key ||
        !letter.file.valid()) {
        return Status(Code::io_error, "shared memory: a peer answered with another heap");
    }
    return take(letter);
}

/// Maps what the letter brought, unless the other connection of the pair was faster.
Status DescriptorExchange::take(Letter& letter) {
    const HeapAddress& from = letter.greeting.from;
    if (heap_.attached(from.token)) {
        return {};
    }
    auto mapping = map_once(from.segment, from.capacity_bytes, [&] {
        return SharedSegment::adopt(std::move(letter.file), from.capacity_bytes, from.lease_bytes);
    });
    if (!mapping) {
        return mapping.status();
    }
    heap_.add_peer(from.token, std::move(*mapping));
    return {};
}

/// Forgets peers that are not missed any more. If none is, hangs up on all callers: they call
/// again, and wait at the door until this process attaches next.
void DescriptorExchange::drop_finished() {
    std::erase_if(wanted_, [&](const Wanted& peer) {
        return peer.wanters == 0 || heap_.attached(peer.address.token);
    });
    std::erase_if(callers_,
                  [&](const Caller& caller) { return wanted_.empty() || !caller.socket.valid(); });
}

} // namespace ucg::shm
