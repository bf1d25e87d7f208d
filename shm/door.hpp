// Where the processes of a host find one another before they share memory: abstract Unix sockets,
// which have no file and vanish with the process, and the letters that carry a segment's descriptor
// (SCM_RIGHTS) over them. Internal to shm; heap.hpp is the way in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "shm/descriptor.hpp"
#include "shm/token.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What another process needs in order to map a heap. Trivially copyable, without pointers: it is
/// exchanged as bytes.
struct HeapAddress {
    Token token;   ///< Names the process's heap, and the door where it is fetched.
    Token key;     ///< A secret of those to whom the owner has told its address.
    Token segment; ///< Names the segment; heaps that were made together lie in one.
    std::uint64_t capacity_bytes = 0; ///< Of the segment,
    std::uint64_t lease_bytes = 0;    ///< and of its start, behind which lie blocks of malloc.

    bool operator==(const HeapAddress&) const = default;
};

/// The socket at which a process is found. It takes connections from the moment that it exists, so
/// whoever learned the token can connect even before the owner begins to answer.
class Door {
  public:
    /// Makes a door with a new token and key.
    static Result<Door> open();
    Door(Door&&) noexcept = default;
    Door& operator=(Door&&) noexcept = default;
    ~Door() { shut(); }

    const Token& token() const { return token_; }
    const Token& key() const { return key_; }
    /// Returns the socket for one system call; -1 when it was shut, or the program has closed it.
    int get() const { return listener_.get(); }
    /// Returns the socket's number, to be watched by poll(2).
    int number() const { return listener_.number(); }

    /// Resets the connections that wait to be accepted and refuses later ones, even if a forked
    /// child has the socket, too.
    void shut();

  private:
    Door(const Token& token, const Token& key, Descriptor listener)
        : token_(token), key_(key), listener_(std::move(listener)) {}

    Token token_;
    Token key_;
    Descriptor listener_;
};

/// Accepts the next connection that waits at a listener, from whomever; invalid, with errno, if
/// there is none.
Descriptor next_caller(int listener);

/// Returns whether the door of that name still takes connections. The door of a dead process does
/// if a forked child has its socket.
bool somebody_listens(const Token& token);

/// Returns a socket that can connect to a door; invalid, with errno, if there can be none.
Descriptor new_socket();

/// Connects the socket to the door of that name. Returns false, with errno, if it cannot:
/// ECONNREFUSED if there is no such door.
bool connect_to(int socket, const Token& token);

/// Returns whether the process at the other end has the same user as this one, by what the kernel
/// says.
bool same_user(int socket);

/// Returns the failure of the system call `what`, with errno.
Status socket_failure(const char* what);
/// Returns the failure that nobody is behind a door, with errno.
Status nobody_there();
/// Returns the failure that a letter's descriptor could not be received.
Status no_descriptor_left();

/// Returns the milliseconds until then as an argument for poll(2), whose largest value is the most;
/// 0 once it is past.
int milliseconds_until(std::chrono::steady_clock::time_point time);

/// The pause before what failed for want of resources is tried again.
inline constexpr auto kDoorPause = std::chrono::milliseconds(5);
/// The most connections that a process has accepted at a time: each takes descriptors of the
/// process.
inline constexpr std::size_t kCallersMax = 16;

/// What both sides of a connection send, with or without the descriptor of a segment.
struct Greeting {
    static constexpr std::uint64_t kMagic = 0x3450414548474355; // "UCGHEAP4"

    std::uint64_t magic = kMagic;
    Token to;         // The key of the receiver.
    HeapAddress from; // Of the sender; the receiver compares it if it has asked for this heap.
};

/// A greeting that arrived, or why none did.
struct Letter {
    enum class Kind { nothing_yet, closed, no_descriptor, greeting };
    Kind kind = Kind::nothing_yet;
    Greeting greeting = {};
    Descriptor file = {}; ///< Invalid if none came with it.

    /// Receives what has come; does not wait.
    static Letter receive(int socket);
};

/// Whether a letter was sent: yes; not yet, to be tried again; the other end has hung up.
enum class Sent { yes, later, hung_up };

/// Sends a greeting, and passes the descriptor `file` unless that is -1. Does not wait.
Sent send_letter(int socket, const Greeting& greeting, int file);

} // namespace ucg::shm
