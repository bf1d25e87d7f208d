#include "shm/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm/heap.hpp"

namespace ucg::shm {
namespace {

constexpr std::uint64_t kMagic = 0x3250414548474355; // "UCGHEAP2"
constexpr int kBacklog = 4096;                       // The system reduces it to its own limit.
constexpr auto kSecondCall = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::milliseconds(5); // Before what failed is tried again.
constexpr std::size_t kCallsMax = 8;                  // Each has a descriptor in flight.
constexpr std::size_t kFlightShare = 4; // Of the descriptors in flight, for all of an exchange.
constexpr std::size_t kCallersMax = 16; // Accepted at a time: each takes descriptors of ours.

/// What both sides send, with the descriptor of the segment.
struct Greeting {
    std::uint64_t magic = kMagic;
    Token to;         // The key of the one who is spoken to.
    HeapAddress from; // With the key, which the other one compares if it has asked for this heap.
    std::uint64_t base = 0; // Where its owner has mapped it: of use within one process only.
};

struct Address {
    sockaddr_un name = {};
    socklen_t length = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

/// A leading zero byte makes a name abstract: it lives in the network namespace, not in a file
/// system.
Address socket_address(const Token& token) {
    Address address;
    const std::string text = "ucg-" + to_text(token);
    address.name.sun_family = AF_UNIX;
    std::memcpy(address.name.sun_path + 1, text.data(), text.size());
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return address;
}

Descriptor new_socket() {
    return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Status socket_failure(const char* what) {
    return failure(Code::io_error, "shared memory: {} failed: {}", what, std::strerror(errno));
}

Status no_descriptor() {
    return Status(Code::io_error, "shared memory: no file descriptor is left to receive a peer's "
                                  "node heap (ulimit -n): raise the limit");
}

/// Who is at the other end, as the kernel knows it.
std::optional<ucred> credentials(int socket) {
    ucred peer = {};
    socklen_t length = sizeof(peer);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
        return std::nullopt;
    }
    return peer;
}

bool same_user(int socket) {
    const auto peer = credentials(socket);
    return peer && peer->uid == ::geteuid();
}

bool same_process(int socket) {
    const auto peer = credentials(socket);
    return peer && peer->pid == ::getpid();
}

bool connect_to(int socket, const Token& token) {
    const Address address = socket_address(token);
    return ::connect(socket, address.get(), address.length) == 0;
}

/// How many calls each of `peers` processes may make at a time, so that their descriptors in flight
/// do not reach what the system grants to all processes of an ordinary user: RLIMIT_NOFILE.
std::size_t calls_at_a_time(std::size_t peers) {
    rlimit files = {};
    const bool limited = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
    const std::size_t all = limited ? files.rlim_cur / kFlightShare : peers * kCallsMax;
    return std::clamp<std::size_t>(all / (peers + 1), 1, kCallsMax);
}

/// Room for the control message that carries one descriptor.
union Control {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> space;
};

} // namespace

struct Exchange::Wanted {
    HeapAddress address;
    Descriptor socket;            // Connected and greeted; the answer is due.
    Clock::time_point not_before; // When it may be called again.
    bool ready = false;           // The socket has news.
    bool met = false;             // It is mapped.
};

/// A greeting that arrived, or why none did.
struct Exchange::Letter {
    enum class Kind { nothing_yet, closed, no_descriptor, greeting };
    Kind kind = Kind::closed;
    Greeting greeting;
    Descriptor file;

    static Letter receive(int socket);
};

Exchange::Letter Exchange::Letter::receive(int socket) {
    Letter letter;
    iovec part = {&letter.greeting, sizeof(letter.greeting)};
    Control control = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    ssize_t got = -1;
    do {
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        letter.kind = Kind::nothing_yet;
        return letter;
    }
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        letter.file = Descriptor(fd);
    } else if ((message.msg_flags & MSG_CTRUNC) != 0) {
        letter.kind = Kind::no_descriptor;
    }
    if (got == sizeof(Greeting) && letter.greeting.magic == kMagic && letter.file.valid()) {
        letter.kind = Kind::greeting;
    }
    return letter;
}

/// Heard, and not answered as long as too many descriptors are in flight.
struct Exchange::Caller {
    Descriptor socket;
    Letter letter = {Letter::Kind::nothing_yet, {}, {}};
    bool ready = true; // The socket has news: who calls greets at once.
};

Result<Descriptor> listen_for_peers(const Token& token) {
    Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    const Address address = socket_address(token);
    if (::bind(socket.get(), address.get(), address.length) != 0) {
        return socket_failure("bind");
    }
    if (::listen(socket.get(), kBacklog) != 0) {
        return socket_failure("listen");
    }
    return socket;
}

Descriptor next_caller(int listener) {
    int caller = -1;
    do {
        caller = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (caller < 0 && (errno == EINTR || errno == ECONNABORTED));
    return Descriptor(caller);
}

bool somebody_listens(const Token& token) {
    const Descriptor socket = new_socket();
    return !socket.valid() || connect_to(socket.get(), token) || errno != ECONNREFUSED;
}

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
    if (heap_.listener_.get() < 0 || heap_.segment_->descriptor() < 0) {
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
    peer.not_before = Clock::now() + kPause;
    Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    if (!connect_to(socket.get(), peer.address.token)) {
        if (errno == EAGAIN || errno == EINTR) { // Its backlog is full; it is called again.
            return Status();
        }
        return failure(Code::unreachable,
                       "shared memory: a process of this host is gone, could not share memory "
                       "itself, or is in another network namespace (connecting to its node heap: "
                       "{})",
                       std::strerror(errno));
    }
    if (!same_user(socket.get())) {
        return Status(Code::unreachable, "shared memory: a node heap belongs to another user");
    }
    if (greet(socket.get(), peer.address.key) == Sent::yes) {
        peer.socket = std::move(socket);
    }
    return Status();
}

Exchange::Sent Exchange::greet(int socket, const Token& key) const {
    const Segment& segment = *heap_.segment_;
    Greeting greeting;
    greeting.to = key;
    greeting.from = heap_.address_;
    greeting.base = reinterpret_cast<std::uintptr_t>(segment.base());
    iovec part = {&greeting, sizeof(greeting)};
    Control control = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = segment.descriptor();
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    ssize_t sent = -1;
    do {
        sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent == sizeof(greeting)) {
        return Sent::yes;
    }
    const bool passes =
        errno == ETOOMANYREFS || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
    return passes ? Sent::later : Sent::hung_up;
}

/// When something is to be tried again of which no socket tells.
Exchange::Clock::time_point Exchange::next_attempt(Clock::time_point deadline) const {
    auto until = deadline;
    const auto unanswered = [](const Caller& caller) {
        return caller.letter.kind != Letter::Kind::nothing_yet;
    };
    if (std::any_of(callers_.begin(), callers_.end(), unanswered)) {
        until = std::min(until, Clock::now() + kPause);
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
    const auto watch = [&](const Descriptor& socket, bool& ready) {
        ready = false;
        sockets.push_back({socket.number(), POLLIN, 0});
        notes.push_back(&ready);
    };
    bool called = false;
    if (callers_.size() < kCallersMax) {
        watch(heap_.listener_, called);
    }
    for (Caller& caller : callers_) {
        if (caller.letter.kind == Letter::Kind::nothing_yet) {
            watch(caller.socket, caller.ready);
        }
    }
    for (Wanted& peer : wanted_) {
        if (peer.socket.valid()) {
            watch(peer.socket, peer.ready);
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
        Descriptor caller = next_caller(heap_.listener_.get());
        if (!caller.valid()) {
            const bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
            return short_of && callers_.empty() ? socket_failure("accept") : Status();
        }
        if (same_user(caller.get())) {
            callers_.push_back({std::move(caller), {Letter::Kind::nothing_yet, {}, {}}, true});
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
    case Letter::Kind::no_descriptor: return no_descriptor();
    case Letter::Kind::closed: caller.socket.reset(); return Status();
    case Letter::Kind::greeting: break;
    }
    if (greeting.to != heap_.address_.key) { // A stranger.
        caller.socket.reset();
        return Status();
    }
    switch (greet(caller.socket.get(), greeting.from.key)) {
    case Sent::later: return Status();
    case Sent::hung_up: break; // Our own call brought it what it missed, or it is dead.
    case Sent::yes:
        if (Status status = take(caller.letter, caller.socket.get()); !status.ok()) {
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
        case Letter::Kind::no_descriptor: return no_descriptor();
        case Letter::Kind::closed:
            peer.socket.reset(); // Called again; a dead process refuses then.
            break;
        case Letter::Kind::greeting:
            if (letter.greeting.from != peer.address || letter.greeting.to != heap_.address_.key) {
                return Status(Code::io_error, "shared memory: a peer answered with another heap");
            }
            if (Status status = take(letter, peer.socket.get()); !status.ok()) {
                return status;
            }
            break;
        }
    }
    return Status();
}

/// Maps what the letter brought, unless the other connection of the pair was faster.
Status Exchange::take(Letter& letter, int socket) {
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
    if (same_process(socket)) {
        // Two heaps of one process (ranks as threads) share the owner's mapping: one address for
        // each byte, so that tools that follow addresses see what the threads share.
        heap_.add_peer(from.token, {reinterpret_cast<std::byte*>(letter.greeting.base),
                                    Heap::segment_in_process(from.token)});
        return Status();
    }
    auto mapping = Segment::adopt(std::move(letter.file), from.capacity_bytes);
    if (!mapping) {
        return mapping.status();
    }
    std::byte* base = (*mapping)->base();
    heap_.add_peer(from.token, {base, std::move(*mapping)});
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
