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
    Token token;   ///< Of the process's heap, and of the door where it is fetched.
    Token key;     ///< A secret of those to whom the owner has told its address.
    Token segment; ///< Where the heap lies; heaps that were made together lie in one.
    std::uint64_t capacity_bytes = 0; ///< Of the segment.

    bool operator==(const HeapAddress&) const = default;
};

/// The socket at which a process is found. It takes connections from the moment that it exists, so
/// whoever learned the token can connect even before the owner begins to answer.
class Door {
  public:
    static Result<Door> open();
    Door(Door&&) noexcept = default;
    Door& operator=(Door&&) noexcept = default;
    ~Door() { shut(); }

    const Token& token() const { return token_; }
    const Token& key() const { return key_; }
    /// For one system call; -1 when it was shut, or the program has closed it.
    int get() const { return listener_.get(); }
    /// To be watched by poll(2).
    int number() const { return listener_.number(); }

    /// Resets who waits to be heard and refuses who calls later, even if a forked child has the
    /// socket, too.
    void shut();

  private:
    Door(const Token& token, const Token& key, Descriptor listener)
        : token_(token), key_(key), listener_(std::move(listener)) {}

    Token token_;
    Token key_;
    Descriptor listener_;
};

/// The next connection that waits at a listener, from whomever; invalid, with errno, if there is
/// none.
Descriptor next_caller(int listener);

/// Does the door of that name still take connections? That of a dead process whose forked child has
/// its socket does.
bool somebody_listens(const Token& token);

Descriptor new_socket();

/// False, with errno, if it cannot be: ECONNREFUSED if there is no such door.
bool connect_to(int socket, const Token& token);

/// Is the process at the other end of the calling one's user, as the kernel knows it?
bool same_user(int socket);

Status socket_failure(const char* what);
/// Nobody is behind a door, says errno.
Status nobody_there();
Status no_descriptor_left();

/// For poll(2): until then, as far as its argument reaches; 0 once it is past.
int milliseconds_until(std::chrono::steady_clock::time_point time);

/// Before what failed for want of something is tried again.
inline constexpr auto kDoorPause = std::chrono::milliseconds(5);
/// Connections that a process has accepted at a time: each takes descriptors of its.
inline constexpr std::size_t kCallersMax = 16;

/// What both sides of a connection send, with or without the descriptor of a segment.
struct Greeting {
    static constexpr std::uint64_t kMagic = 0x3350414548474355; // "UCGHEAP3"

    std::uint64_t magic = kMagic;
    Token to;         // The key of the one who is spoken to.
    HeapAddress from; // With the key, which the other one compares if it has asked for this heap.
};

/// A greeting that arrived, or why none did.
struct Letter {
    enum class Kind { nothing_yet, closed, no_descriptor, greeting };
    Kind kind = Kind::nothing_yet;
    Greeting greeting = {};
    Descriptor file = {}; ///< Invalid if it brought none.

    static Letter receive(int socket);
};

enum class Sent { yes, later, hung_up };

/// `file`: the descriptor to be passed, or -1.
Sent send_letter(int socket, const Greeting& greeting, int file);

} // namespace ucg::shm
