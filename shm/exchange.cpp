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

constexpr auto kSecondCall = std::chrono::milliseconds(100);
constexpr std::size_t kCallsMax = 8;    // Each has a descriptor in flight.
constexpr std::size_t kFlightShare = 4; // Of the descriptors in flight, for all of an exchange.

/// How many calls each of `peers` processes may make at a time, so that their descriptors in flight
/// do not reach what the system grants to all processes of an ordinary user: RLIMIT_NOFILE.
std::size_t calls_at_a_time(std::size_t peers) {
    rlimit files = {};
    const bool limited = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
    const std::size_t all = limited ? files.rlim_cur / kFlightShare : peers * kCallsMax;
    return std::clamp<std::size_t>(all / (peers + 1), 1, kCallsMax);
}

} // namespace

struct Exchange::Wanted {
    HeapAddress address;
    Descriptor socket;            // Connected and greeted; the answer is due.
    Clock::time_point not_before; // When it may be called again.
    bool ready = false;           // The socket has news.
    bool met = false;             // It is mapped.
};

/// Heard, and not answered as long as too many descriptors are in flight.
struct Exchange::Caller {
    Descriptor socket;
    Letter letter;
    bool ready = true; // The socket has news: who calls greets at once.
};

/// Begins with the peers behind the own place, so that not all call the first one at once.
Exchange::Exchange(Heap& heap, std::span<const HeapAddress> peers)
    : heap_(heap), started_(Clock::now()), calls_max_(calls_at_a_time(peers.size())) {
    const auto own = std::find(peers.begin(), peers.end(), heap_.address_);
    const auto first = static_cast<std::size_t>(own - peers.begin());
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const HeapAddress& peer = peers[(first + i) % peers.size()];
        if (!heap_.attached(peer.token)) {
            wanted_.push_back({peer, Descriptor(), started_, false, false});
        }
    }
}

Exchange::~Exchange() = default;

/// Needed to meet anybody new, and the program may have closed them.
Status Exchange::own_descriptors() const {
    if (heap_.door_.get() < 0 || heap_.segment_->descriptor() < 0) {
        return Status(Code::unreachable,
                      "shared memory: the program has closed descriptors that it did not open "
                      "(closefrom), the node heap's among them: processes that it has not met yet "
                      "cannot map it");
    }
    return Status();
}

Status Exchange::run(Clock::time_point deadline) {
    Status status = own_descriptors();
    while (status.ok() && !wanted_.empty()) {
        status = call_missing();
        if (status.ok()) {
            wait(deadline);
            status = accept_callers();
        }
        if (status.ok()) {
            status = hear_callers();
        }
        if (status.ok()) {
            status = hear_answers();
        }
        drop_finished();
        if (status.ok() && !wanted_.empty() && Clock::now() >= deadline) {
            status = late();
        }
    }
    return status;
}

bool Exchange::my_turn(const Wanted& peer) const {
    return heap_.address_.token < peer.address.token || Clock::now() - started_ >= kSecondCall;
}

/// Greeted and not answered yet.
std::size_t Exchange::calls() const {
    return static_cast<std::size_t>(std::count_if(
        wanted_.begin(), wanted_.end(), [](const Wanted& peer) { return peer.socket.valid(); }));
}

Status Exchange::call_missing() {
    std::size_t room = calls_max_ - calls();
    for (std::size_t i = 0; i < wanted_.size() && room > 0; ++i) {
        Wanted& peer = wanted_[i];
        if (!peer.socket.valid() && my_turn(peer) && Clock::now() >= peer.not_before) {
            if (Status status = call(peer); !status.ok()) {
                return status;
            }
            room -= peer.socket.valid() ? 1 : 0;
        }
    }
    return Status();
}

Status Exchange::call(Wanted& peer) {
    peer.not_before = Clock::now() + kDoorPause;
    Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    if (!connect_to(socket.get(), peer.address.token)) {
        if (errno == EAGAIN || errno == EINTR) { // Its backlog is full; it is called again.
            return Status();
        }
        return nobody_there();
    }
    if (!same_user(socket.get())) {
        return Status(Code::unreachable, "shared memory: a node heap belongs to another user");
    }
    if (greet(socket.get(), peer.address.key) == Sent::yes) {
        peer.socket = std::move(socket);
    }
    return Status();
}

Sent Exchange::greet(int socket, const Token& key) const {
    Greeting greeting;
    greeting.to = key;
    greeting.from = heap_.address_;
    return send_letter(socket, greeting, heap_.segment_->descriptor());
}

/// When something is to be tried again of which no socket tells.
Exchange::Clock::time_point Exchange::next_attempt(Clock::time_point deadline) const {
    auto until = deadline;
    const auto unanswered = [](const Caller& caller) {
        return caller.letter.kind != Letter::Kind::nothing_yet;
    };
    if (std::any_of(callers_.begin(), callers_.end(), unanswered)) {
        until = std::min(until, Clock::now() + kDoorPause);
    }
    const bool may_call = calls() < calls_max_;
    for (const Wanted& peer : wanted_) {
        if (may_call && !peer.socket.valid()) {
            until = std::min(until, my_turn(peer) ? peer.not_before : started_ + kSecondCall);
        }
    }
    return until;
}

/// Sleeps until a socket has news, or it is time to try something again. Notes which have: with
/// many peers it would take a system call for each of them to ask all.
void Exchange::wait(Clock::time_point deadline) {
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
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_attempt(deadline) - Clock::now());
    const int events = ::poll(sockets.data(), sockets.size(),
                              static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    for (std::size_t i = 0; events > 0 && i < sockets.size(); ++i) {
        *notes[i] = sockets[i].revents != 0;
    }
}

Status Exchange::accept_callers() {
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
    return Status();
}

Status Exchange::hear_callers() {
    for (Caller& caller : callers_) {
        if (Status status = hear(caller); !status.ok()) {
            return status;
        }
    }
    return Status();
}

/// Answers first and maps then: whose answer could not be delivered may have to be answered again.
Status Exchange::hear(Caller& caller) {
    if (caller.letter.kind == Letter::Kind::nothing_yet && caller.ready) {
        caller.letter = Letter::receive(caller.socket.get());
    }
    const Greeting& greeting = caller.letter.greeting;
    switch (caller.letter.kind) {
    case Letter::Kind::nothing_yet: return Status();
    case Letter::Kind::no_descriptor: return no_descriptor_left();
    case Letter::Kind::closed: caller.socket.reset(); return Status();
    case Letter::Kind::greeting: break;
    }
    if (greeting.to != heap_.address_.key || !caller.letter.file.valid()) { // A stranger.
        caller.socket.reset();
        return Status();
    }
    switch (greet(caller.socket.get(), greeting.from.key)) {
    case Sent::later: return Status();
    case Sent::hung_up: break; // Our own call brought it what it missed, or it is dead.
    case Sent::yes:
        if (Status status = take(caller.letter); !status.ok()) {
            return status;
        }
        break;
    }
    caller.socket.reset();
    return Status();
}

Status Exchange::hear_answers() {
    for (Wanted& peer : wanted_) {
        if (!peer.socket.valid() || !peer.ready) {
            continue;
        }
        Letter letter = Letter::receive(peer.socket.get());
        switch (letter.kind) {
        case Letter::Kind::nothing_yet: break;
        case Letter::Kind::no_descriptor: return no_descriptor_left();
        case Letter::Kind::closed:
            peer.socket.reset(); // Called again; a dead process refuses then.
            break;
        case Letter::Kind::greeting:
            if (letter.greeting.from != peer.address || letter.greeting.to != heap_.address_.key ||
                !letter.file.valid()) {
                return Status(Code::io_error, "shared memory: a peer answered with another heap");
            }
            if (Status status = take(letter); !status.ok()) {
                return status;
            }
            break;
        }
    }
    return Status();
}

/// Maps what the letter brought, unless the other connection of the pair was faster.
Status Exchange::take(Letter& letter) {
    const HeapAddress& from = letter.greeting.from;
    const auto wanted = std::find_if(wanted_.begin(), wanted_.end(), [&](const Wanted& peer) {
        return peer.address.token == from.token;
    });
    if (heap_.attached(from.token)) {
        return Status();
    }
    if (wanted != wanted_.end()) {
        wanted->met = true;
    }
    auto mapping = map_once(from.segment, from.capacity_bytes, [&] {
        return Segment::adopt(std::move(letter.file), from.capacity_bytes);
    });
    if (!mapping) {
        return mapping.status();
    }
    heap_.add_peer(from.token, std::move(*mapping));
    return Status();
}

void Exchange::drop_finished() {
    std::erase_if(callers_, [](const Caller& caller) { return !caller.socket.valid(); });
    std::erase_if(wanted_, [](const Wanted& peer) { return peer.met; });
}

Status Exchange::late() const {
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
    return failure(
        Code::timed_out,
        "shared memory: {} processes of this host did not pass their node heaps within {} "
        "ms (the first is {})",
        wanted_.size(), waited.count(), to_text(wanted_.front().address.token));
}

} // namespace ucg::shm
