#include "shm/door.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace ucg::shm {
namespace {

constexpr int kBacklog = 4096; // The system reduces it to its own limit.

struct Address {
    sockaddr_un name = {};
    socklen_t length = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

/// Returns the address of the door of that name. A leading zero byte makes it abstract: it lives in
/// the network namespace, not in a file system.
Address socket_address(const Token& token) {
    Address address;
    const std::string text = "ucg-" + to_text(token);
    address.name.sun_family = AF_UNIX;
    std::memcpy(address.name.sun_path + 1, text.data(), text.size());
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return address;
}

Result<Descriptor> listen_at(const Token& token) {
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

/// Room for the control message that carries one descriptor.
union Control {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> space;
};

} // namespace

Result<Door> Door::open() {
    auto token = random_token();
    auto key = random_token();
    if (!token || !key) {
        return token ? key.status() : token.status();
    }
    auto listener = listen_at(*token);
    if (!listener) {
        return listener.status();
    }
    return Door(*token, *key, std::move(*listener));
}

/// Closing the socket would not be enough, since a forked child may have it, too.
void Door::shut() {
    if (const int listener = listener_.get(); listener >= 0) {
        ::shutdown(listener, SHUT_RDWR);
        for (Descriptor caller = next_caller(listener); caller.valid();) {
            caller = next_caller(listener);
        }
    }
    listener_.reset();
}

Descriptor new_socket() {
    return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Descriptor next_caller(int listener) {
    int caller = -1;
    do {
        caller = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (caller < 0 && (errno == EINTR || errno == ECONNABORTED));
    return Descriptor(caller);
}

bool connect_to(int socket, const Token& token) {
    const Address address = socket_address(token);
    return ::connect(socket, address.get(), address.length) == 0;
}

bool somebody_listens(const Token& token) {
    const Descriptor socket = new_socket();
    return !socket.valid() || connect_to(socket.get(), token) || errno != ECONNREFUSED;
}

bool same_user(int socket) {
    ucred peer = {};
    socklen_t length = sizeof(peer);
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           peer.uid == ::geteuid();
}

Status socket_failure(const char* what) {
    return failure(Code::io_error, "shared memory: {} failed: {}", what, std::strerror(errno));
}

Status nobody_there() {
    return failure(Code::unreachable,
                   "shared memory: a process of this host is gone, could not share memory itself, "
                   "or is in another network namespace (connecting to its node heap: {})",
                   std::strerror(errno));
}

int milliseconds_until(std::chrono::steady_clock::time_point time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        time - std::min(time, std::chrono::steady_clock::now()));
    return static_cast<int>(std::min<std::int64_t>(left.count(), std::numeric_limits<int>::max()));
}

Status no_descriptor_left() {
    return Status(Code::io_error, "shared memory: no file descriptor is left to receive a peer's "
                                  "node heap (ulimit -n): raise the limit");
}

Letter Letter::receive(int socket) {
    Letter letter;
    letter.kind = Kind::closed;
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
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        letter.kind = Kind::no_descriptor;
    } else if (got == sizeof(Greeting) && letter.greeting.magic == Greeting::kMagic) {
        letter.kind = Kind::greeting;
    }
    return letter;
}

Sent send_letter(int socket, const Greeting& greeting, int file) {
    Greeting bytes = greeting;
    iovec part = {&bytes, sizeof(bytes)};
    Control control = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &file, sizeof(file));
    }
    ssize_t sent = -1;
    do {
        sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent == sizeof(bytes)) {
        return Sent::yes;
    }
    const bool passes =
        errno == ETOOMANYREFS || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
    return passes ? Sent::later : Sent::hung_up;
}

} // namespace ucg::shm
