#include "shm/meeting.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <poll.h>
#include <utility>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/mappings.hpp"

namespace ucg::shm {
namespace {

using Clock = std::chrono::steady_clock;

/// Who waits in silence looks so often whether the others still exist.
constexpr auto kSilence = std::chrono::milliseconds(100);

int milliseconds_until(Clock::time_point time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

/// The first member, which has made the segment.
class Giver {
  public:
    Giver(const Door& door, const Segment& segment, std::span<const HeapWish> members)
        : door_(door), segment_(segment) {
        for (const HeapWish& member : members.subspan(1)) {
            members_.emplace(member.token, member.key);
        }
        missing_ = members_;
    }

    Status run(Clock::time_point deadline) {
        if (door_.get() < 0 || segment_.descriptor() < 0) {
            return Status(Code::unreachable, "shared memory: the program has closed descriptors "
                                             "that it did not open (closefrom)");
        }
        while (!missing_.empty()) {
            wait(deadline);
            if (Status status = accept_callers(); !status.ok()) {
                return status;
            }
            for (Caller& caller : callers_) {
                hear(caller);
            }
            std::erase_if(callers_, [](const Caller& caller) { return !caller.socket.valid(); });
            if (Status status = look_around(deadline); !status.ok()) {
                return status;
            }
        }
        return {};
    }

  private:
    struct Caller {
        Descriptor socket;
        Letter letter = {};
        bool given = false; ///< It hangs up when it has got the segment, or cannot.
    };

    void wait(Clock::time_point deadline) {
        std::vector<pollfd> sockets;
        auto until = std::min(deadline, silent_until_);
        if (callers_.size() < kCallersMax) {
            sockets.push_back({door_.number(), POLLIN, 0});
        }
        for (const Caller& caller : callers_) {
            if (caller.letter.kind == Letter::Kind::greeting && !caller.given) {
                until = std::min(until, Clock::now() + kDoorPause);
            } else {
                sockets.push_back({caller.socket.number(), POLLIN, 0});
            }
        }
        if (::poll(sockets.data(), sockets.size(), milliseconds_until(until)) > 0) {
            silent_until_ = Clock::now() + kSilence;
        }
    }

    Status accept_callers() {
        while (callers_.size() < kCallersMax) {
            Descriptor caller = next_caller(door_.get());
            if (!caller.valid()) {
                const bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
                return short_of && callers_.empty() ? socket_failure("accept") : Status();
            }
            if (same_user(caller.get())) {
                callers_.push_back({std::move(caller)});
            }
        }
        return {};
    }

    void hear(Caller& caller) {
        if (caller.given) {
            if (Letter::receive(caller.socket.get()).kind != Letter::Kind::nothing_yet) {
                missing_.erase(caller.letter.greeting.from.token);
                caller.socket.reset();
            }
            return;
        }
        if (caller.letter.kind == Letter::Kind::nothing_yet) {
            caller.letter = Letter::receive(caller.socket.get());
        }
        if (caller.letter.kind == Letter::Kind::greeting && is_member(caller.letter.greeting)) {
            // One that has hung up without its letter calls again, and is missing again.
            missing_.insert(*members_.find(caller.letter.greeting.from.token));
            give(caller);
        } else if (caller.letter.kind != Letter::Kind::nothing_yet) {
            caller.socket.reset();
        }
    }

    bool is_member(const Greeting& greeting) const {
        const auto member = members_.find(greeting.from.token);
        return greeting.to == door_.key() && member != members_.end() &&
               member->second == greeting.from.key;
    }

    void give(Caller& caller) {
        Greeting greeting;
        greeting.to = caller.letter.greeting.from.key;
        greeting.from = {door_.token(), door_.key(), door_.token(), segment_.bytes()};
        const Sent sent = send_letter(caller.socket.get(), greeting, segment_.descriptor());
        caller.given = sent == Sent::yes;
        if (sent == Sent::hung_up) { // It calls again, unless it is dead.
            caller.socket.reset();
        }
    }

    /// Who is gone calls no more. Signals, of which many may come, end no silence and are none.
    Status look_around(Clock::time_point deadline) {
        if (Clock::now() >= deadline) {
            return failure(Code::timed_out,
                           "shared memory: {} processes of this host did not come for the node "
                           "heap in time (the first is {})",
                           missing_.size(), to_text(missing_.begin()->first));
        }
        const auto calls = [&](const Token& token) {
            return std::any_of(callers_.begin(), callers_.end(), [&](const Caller& caller) {
                return caller.letter.greeting.from.token == token;
            });
        };
        if (Clock::now() < silent_until_) {
            return {};
        }
        silent_until_ = Clock::now() + kSilence;
        const bool gone = std::any_of(missing_.begin(), missing_.end(), [&](const auto& member) {
            return !calls(member.first) && !somebody_listens(member.first);
        });
        return gone ? nobody_there() : Status();
    }

    const Door& door_;
    const Segment& segment_;
    std::map<Token, Token> members_; ///< Keys, by tokens.
    std::map<Token, Token> missing_; ///< Those that have not got it, as far as is known.
    Clock::time_point silent_until_ = Clock::now() + kSilence; ///< Unless there are news before.
    std::vector<Caller> callers_;
};

/// Who has greeted does not hang up before there is an answer, whatever signals come: the giver
/// takes one that hangs up for one that has got its letter.
Result<Letter> read_answer(const Door& door, const HeapWish& giver, int socket,
                           Clock::time_point deadline) {
    Letter letter;
    do {
        pollfd watched = {socket, POLLIN, 0};
        ::poll(&watched, 1, milliseconds_until(deadline));
        letter = Letter::receive(socket);
    } while (letter.kind == Letter::Kind::nothing_yet && Clock::now() < deadline);
    if (letter.kind == Letter::Kind::no_descriptor) {
        return no_descriptor_left();
    }
    const Greeting& greeting = letter.greeting;
    if (letter.kind == Letter::Kind::greeting &&
        (greeting.to != door.key() || greeting.from.token != giver.token ||
         greeting.from.key != giver.key || !letter.file.valid())) {
        return Status(Code::io_error, "shared memory: a peer answered with another heap");
    }
    return letter;
}

/// One call; nothing_yet or closed if it is worth another one.
Result<Letter> call(const Door& door, const HeapWish& giver, Clock::time_point deadline) {
    const Descriptor socket = new_socket();
    if (!socket.valid()) {
        return socket_failure("socket");
    }
    if (!connect_to(socket.get(), giver.token)) {
        const bool busy = errno == EAGAIN || errno == EINTR; // Its backlog is full.
        return busy ? Result<Letter>(Letter()) : Result<Letter>(nobody_there());
    }
    if (!same_user(socket.get())) {
        return Status(Code::unreachable, "shared memory: a node heap belongs to another user");
    }
    Greeting greeting;
    greeting.to = giver.key;
    greeting.from.token = door.token();
    greeting.from.key = door.key();
    if (send_letter(socket.get(), greeting, -1) != Sent::yes) {
        return Letter();
    }
    return read_answer(door, giver, socket.get(), deadline);
}

Result<Letter> fetch(const Door& door, const HeapWish& giver, Clock::time_point deadline) {
    for (;;) {
        Result<Letter> letter = call(door, giver, deadline);
        if (!letter.ok() || letter->kind == Letter::Kind::greeting) {
            return letter;
        }
        if (Clock::now() >= deadline) {
            return Status(Code::timed_out,
                          "shared memory: the first process of this host did not pass the node "
                          "heap in time");
        }
        ::poll(nullptr, 0, static_cast<int>(kDoorPause.count()));
    }
}

} // namespace

CommonLayout::CommonLayout(std::span<const HeapWish> members) : members_(members) {
    const std::uint64_t pages = members.size() + 1; // Between parts.
    const std::uint64_t rest = near(members.size()) + pages * page_bytes();
    const std::uint64_t room = members[0].file_bytes_max;
    part_max_ = (room - std::min(room, rest)) / members.size() / page_bytes() * page_bytes();
}

std::uint64_t CommonLayout::bell(std::size_t member) const {
    return member * sizeof(Doorbell);
}

std::uint64_t CommonLayout::bells_bytes() const {
    return round_up(members_.size() * sizeof(Doorbell), page_bytes());
}

std::uint64_t CommonLayout::close(std::size_t member) const {
    return bells_bytes() + member * close_bytes();
}

/// Together little enough for 32 pages of page tables, and what a group of all takes of each: lines
/// of 16 rings, some bytes for each rank, and memory that all others read.
std::uint64_t CommonLayout::close_bytes() const {
    constexpr std::uint64_t kAll = std::uint64_t{64} << 20;
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMost = std::uint64_t{3} << 19;
    return round_up(std::clamp(kAll / members_.size(), kLeast, kMost), page_bytes());
}

std::uint64_t CommonLayout::near(std::size_t member) const {
    return close(members_.size()) + member * near_bytes();
}

/// Of what a group of all takes of each: rings between all pairs, whose buffers have a bound for
/// the host, and which take a few KiB where that gives them none.
std::uint64_t CommonLayout::near_bytes() const {
    constexpr std::uint64_t kAll = std::uint64_t{128} << 20;
    constexpr std::uint64_t kMost = std::uint64_t{4} << 20;
    constexpr std::uint64_t kPeer = std::uint64_t{4} << 10;
    return round_up(std::max(std::min(kAll / members_.size(), kMost), kPeer * members_.size()),
                    page_bytes());
}

std::uint64_t CommonLayout::part(std::size_t member) const {
    std::uint64_t offset = near(members_.size()) + page_bytes();
    for (std::size_t before = 0; before < member; ++before) {
        offset += part_bytes(before) + page_bytes();
    }
    return offset;
}

Result<std::shared_ptr<Segment>> meet(const Door& door, std::span<const HeapWish> members,
                                      std::size_t self, Clock::time_point deadline) {
    const CommonLayout layout(members);
    if (layout.part_bytes(self) == 0) {
        return failure(
            Code::out_of_memory,
            "the file size limit ({} bytes, ulimit -f) leaves no room for the node heaps "
            "of {} processes: raise it",
            members[0].file_bytes_max, members.size());
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (i != self && members[i].token == door.token()) {
            return Status(Code::invalid_argument,
                          "shared memory: one context takes part in a group more than once");
        }
    }
    if (self > 0) {
        Result<Letter> letter = fetch(door, members[0], deadline);
        if (!letter.ok()) {
            return letter.status();
        }
        return map_once(members[0].token, layout.bytes(),
                        [&] { return Segment::join(std::move(letter->file), layout.bytes()); });
    }
    Result<std::unique_ptr<Segment>> made = Segment::create(layout.bytes());
    if (!made.ok()) {
        return made.status();
    }
    std::shared_ptr<Segment> segment = std::move(*made);
    if (Status status = segment->reserve(0, layout.bells_bytes()); !status.ok()) {
        return status;
    }
    note_mapping(door.token(), segment);
    if (Status status = Giver(door, *segment, members).run(deadline); !status.ok()) {
        return status;
    }
    return segment;
}

} // namespace ucg::shm
