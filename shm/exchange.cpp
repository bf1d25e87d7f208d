#include "shm/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm/heap.hpp"

namespace ucg::shm {
namespace {

constexpr std::uint64_t kMagic = 0x3150414548474355; // "UCGHEAP1"
constexpr int kBacklog = 4096;                       // The system reduces it to its own limit.
constexpr auto kSecondCall = std::chrono::milliseconds(100);
constexpr auto kPollStep = std::chrono::milliseconds(5); // To call again a peer that was busy.

/// What both sides send, with the descriptor of the segment.
struct Greeting {
    std::uint64_t magic = kMagic;
    Token token;
    std::uint64_t capacity_bytes = 0;
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

/// Room for the control message that carries one descriptor.
union Control {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> space;
};

} // namespace

struct Exchange::Wanted {
    HeapAddress address;
    Descriptor socket; // Connected and greeted; the answer is due.
};

/// A greeting that arrived, or why none did.
struct Exchange::Letter {
    enum class Kind { nothing_yet, closed, greeting };
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
    }
    if (got == sizeof(Greeting) && letter.greeting.magic == kMagic && letter.file.valid()) {
        letter.kind = Kind::greeting;
    }
    return letter;
}

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

Exchange::Exchange(Heap& heap, std::span<const HeapAddress> peers)
    : heap_(heap), started_(Clock::now()) {
    for (const HeapAddress& peer : peers) {
        if (!heap_.attached(peer.token)) {
            wanted_.push_back({peer, Descriptor()});
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
    Status status = wanted_.empty() ? Status() : own_descriptors();
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

Status Exchange::call_missing() {
    const bool everyone = Clock::now() - started_ >= kSecondCall;
    for (Wanted& peer : wanted_) {
        const bool my_turn = everyone || heap_.token_ < peer.address.token;
        if (my_turn && !peer.socket.valid()) {
            if (Status status = call(peer); !status.ok()) {
                return status;
            }
        }
    }
    return Status();
}

Status Exchange::call(Wanted& peer) {
    Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    const Address address = socket_address(peer.address.token);
    if (::connect(socket.get(), address.get(), address.length) != 0) {
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
    if (greet(socket.get())) {
        peer.socket = std::move(socket);
    }
    return Status();
}

bool Exchange::greet(int socket) const {
    const Segment& segment = *heap_.segment_;
    Greeting greeting;
    greeting.token = heap_.token_;
    greeting.capacity_bytes = segment.bytes();
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
    return sent == sizeof(greeting);
}

/// Sleeps until a socket has news, or it is time to call a peer again.
void Exchange::wait(Clock::time_point deadline) const {
    std::vector<pollfd> sockets = {{heap_.listener_.get(), POLLIN, 0}};
    for (const Descriptor& caller : callers_) {
        sockets.push_back({caller.get(), POLLIN, 0});
    }
    for (const Wanted& peer : wanted_) {
        if (peer.socket.valid()) {
            sockets.push_back({peer.socket.get(), POLLIN, 0});
        }
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const auto time = std::clamp(left, std::chrono::milliseconds(0), kPollStep);
    ::poll(sockets.data(), sockets.size(), static_cast<int>(time.count()));
}

Status Exchange::accept_callers() {
    while (true) {
        Descriptor caller(
            ::accept4(heap_.listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (caller.valid()) {
            if (same_user(caller.get())) {
                callers_.push_back(std::move(caller));
            }
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            return socket_failure("accept");
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return Status();
        }
    }
}

Status Exchange::hear_callers() {
    for (Descriptor& caller : callers_) {
        Letter letter = Letter::receive(caller.get());
        if (letter.kind == Letter::Kind::nothing_yet) {
            continue;
        }
        if (letter.kind == Letter::Kind::greeting) {
            if (Status status = take(letter, caller.get()); !status.ok()) {
                return status;
            }
            // A caller that hung up got the segment by its answer to our own call, or it is dead.
            static_cast<void>(greet(caller.get()));
        }
        caller.reset();
    }
    return Status();
}

Status Exchange::hear_answers() {
    for (Wanted& peer : wanted_) {
        if (!peer.socket.valid()) {
            continue;
        }
        Letter letter = Letter::receive(peer.socket.get());
        if (letter.kind == Letter::Kind::closed) {
            peer.socket.reset(); // Called again; a dead process refuses then.
        } else if (letter.kind == Letter::Kind::greeting) {
            if (letter.greeting.token != peer.address.token) {
                return Status(Code::io_error, "shared memory: a peer answered with another heap");
            }
            if (Status status = take(letter, peer.socket.get()); !status.ok()) {
                return status;
            }
        }
    }
    return Status();
}

/// Maps what the letter brought, unless the other connection of the pair was faster.
Status Exchange::take(Letter& letter, int socket) {
    const Greeting& greeting = letter.greeting;
    if (heap_.attached(greeting.token)) {
        return Status();
    }
    if (same_process(socket)) {
        // Two heaps of one process (ranks as threads) share the owner's mapping: one address for
        // each byte, so that tools that follow addresses see what the threads share.
        heap_.add_peer(greeting.token, {reinterpret_cast<std::byte*>(greeting.base),
                                        Heap::segment_in_process(greeting.token)});
        return Status();
    }
    auto mapping = Segment::adopt(std::move(letter.file), greeting.capacity_bytes);
    if (!mapping) {
        return mapping.status();
    }
    std::byte* base = (*mapping)->base();
    heap_.add_peer(greeting.token, {base, std::move(*mapping)});
    return Status();
}

void Exchange::drop_finished() {
    std::erase_if(callers_, [](const Descriptor& caller) { return !caller.valid(); });
    std::erase_if(wanted_,
                  [this](const Wanted& peer) { return heap_.attached(peer.address.token); });
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
