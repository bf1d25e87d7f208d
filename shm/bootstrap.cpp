#include "shm/bootstrap.hpp"

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

/// So often a member to whom nothing comes asks whether the others still exist.
constexpr auto kSilence = std::chrono::milliseconds(100);

} // namespace

/// The first member, which has made the segment.
class Bootstrap::Giver {
  public:
    Giver(const Door& door, const SharedSegment& segment, std::span<const HeapWish> members,
          Clock::time_point deadline)
        : door_(door), segment_(segment), deadline_(deadline) {
        for (const HeapWish& member : members.subspan(1)) {
            members_.emplace(member.token, member.key);
        }
        missing_ = members_;
    }

    /// Does what is due. Returns nothing as long as some member has not got the segment.
    std::optional<Status> step(Clock::time_point until) {
        if (door_.get() < 0 || segment_.descriptor() < 0) {
            return Status(Code::unreachable, "shared memory: the program has closed descriptors "
                                             "that it did not open (closefrom)");
        }
        if (!missing_.empty()) {
            wait(until);
            if (Status status = accept_callers(); !status.ok()) {
                return status;
            }
            for (Caller& caller : callers_) {
                hear(caller);
            }
            std::erase_if(callers_, [](const Caller& caller) { return !caller.socket.valid(); });
        }
        return missing_.empty() ? std::optional(Status()) : look_around();
    }

  private:
    struct Caller {
        Descriptor socket;
        Letter letter = {};
        bool given = false; ///< The segment was sent; the caller then hangs up.
    };

    /// Sleeps until a socket has news, or it is time to try something again.
    void wait(Clock::time_point until) {
        std::vector<pollfd> sockets;
        until = std::min({until, deadline_, silent_until_});
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

    /// Called when members are missing. Fails if the deadline is past, or if nothing has come for
    /// kSilence and a missing member is gone. Signals, of which many may come, do not count as
    /// news.
    std::optional<Status> look_around() {
        if (Clock::now() >= deadline_) {
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
            return std::nullopt;
        }
        silent_until_ = Clock::now() + kSilence;
        const bool gone = std::any_of(missing_.begin(), missing_.end(), [&](const auto& member) {
            return !calls(member.first) && !somebody_listens(member.first);
        });
        return gone ? std::optional(nobody_there()) : std::nullopt;
    }

    const Door& door_;
    const SharedSegment& segment_;
    Clock::time_point deadline_;
    std::map<Token, Token> members_; ///< Keys of the other members, by tokens.
    std::map<Token, Token> missing_; ///< Those that have not got the segment, as far as is known.
    Clock::time_point silent_until_ = Clock::now() + kSilence; ///< When to ask if members exist.
    std::vector<Caller> callers_;
};

/// Another member, which calls the giver until it has its letter.
class Bootstrap::Taker {
  public:
    Taker(const Door& door, const HeapWish& giver, Clock::time_point deadline)
        : door_(door), giver_(giver), deadline_(deadline) {}

    /// Does what is due. Returns nothing as long as the letter has not come.
    std::optional<Result<Letter>> step(Clock::time_point until) {
        until = std::min(until, deadline_);
        std::optional<Result<Letter>> ended =
            socket_.valid() ? read_answer(until) : call_again(until);
        if (!ended && Clock::now() >= deadline_) {
            ended = Status(Code::timed_out, "shared memory: the first process of this host did not "
                                            "pass the node heap in time");
        }
        return ended;
    }

  private:
    std::optional<Result<Letter>> call_again(Clock::time_point until) {
        ::poll(nullptr, 0, milliseconds_until(std::min(until, not_before_)));
        if (Clock::now() < not_before_) {
            return std::nullopt;
        }
        Status status = call();
        return status.ok() ? std::nullopt : std::optional(Result<Letter>(std::move(status)));
    }

    /// Calls and greets the giver. Has a socket then, unless the giver has no room for one more
    /// caller now.
    Status call() {
        not_before_ = Clock::now() + kDoorPause;
        Descriptor socket = new_socket();
        if (!socket.valid()) {
            return socket_failure("socket");
        }
        if (!connect_to(socket.get(), giver_.token)) {
            const bool busy = errno == EAGAIN || errno == EINTR; // Its backlog is full.
            return busy ? Status() : nobody_there();
        }
        if (!same_user(socket.get())) {
            return Status(Code::unreachable, "shared memory: a node heap belongs to another user");
        }
        Greeting greeting;
        greeting.to = giver_.key;
        greeting.from.token = door_.token();
        greeting.from.key = door_.key();
        if (send_letter(socket.get(), greeting, -1) == Sent::yes) {
            socket_ = std::move(socket);
        }
        return {};
    }

    /// Waits for the answer and reads it. Does not hang up before there is one, whatever signals
    /// come: the giver takes a member that hangs up for one that has got its letter.
    std::optional<Result<Letter>> read_answer(Clock::time_point until) {
        pollfd watched = {socket_.number(), POLLIN, 0};
        ::poll(&watched, 1, milliseconds_until(until));
        Letter letter = Letter::receive(socket_.get());
        if (letter.kind == Letter::Kind::nothing_yet) {
            return std::nullopt;
        }
        socket_.reset();
        switch (letter.kind) {
        case Letter::Kind::nothing_yet:
        case Letter::Kind::closed: return std::nullopt; // It is called again.
        case Letter::Kind::no_descriptor: return no_descriptor_left();
        case Letter::Kind::greeting: break;
        }
        const Greeting& greeting = letter.greeting;
        if (greeting.to != door_.key() || greeting.from.token != giver_.token ||
            greeting.from.key != giver_.key || !letter.file.valid()) {
            return Status(Code::io_error, "shared memory: a peer answered with another heap");
        }
        return letter;
    }

    const Door& door_;
    const HeapWish& giver_;
    Clock::time_point deadline_;
    Clock::time_point not_before_; ///< When it may be called again.
    Descriptor socket_;            ///< Connected and greeted; the answer is due.
};

CommonLayout::CommonLayout(std::span<const HeapWish> members) : members_(members) {
    const std::uint64_t pages = members.size() + 1; // Unused ones, before, between and after parts.
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

/// All close parts are together small enough for 32 pages of page tables. Each has what a group of
/// all members takes of it: lines of 16 rings, some bytes for each rank, and memory that all others
/// read.
std::uint64_t CommonLayout::close_bytes() const {
    constexpr std::uint64_t kAll = std::uint64_t{64} << 20;
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMost = std::uint64_t{3} << 19;
    return round_up(std::clamp(kAll / members_.size(), kLeast, kMost), page_bytes());
}

std::uint64_t CommonLayout::near(std::size_t member) const {
    return close(members_.size()) + member * near_bytes();
}

/// A near part has what a group of all members takes of it for pairs: rings between all, whose
/// buffers have a bound for the host; where that leaves none, each ring still takes a few KiB.
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

Bootstrap::Bootstrap(const Door& door, std::span<const HeapWish> members, std::size_t self,
                     Clock::time_point deadline)
    : door_(door), members_(members), self_(self), layout_(members), deadline_(deadline) {}

Bootstrap::~Bootstrap() = default;

std::optional<Bootstrap::Segments> Bootstrap::step(Clock::time_point until) {
    if (giver_ == nullptr && taker_ == nullptr) {
        if (Status status = begin(); !status.ok()) {
            return status;
        }
    }
    return self_ == 0 ? give(until) : take(until);
}

Status Bootstrap::begin() {
    if (layout_.part_bytes(self_) == 0) {
        return failure(
            Code::out_of_memory,
            "the file size limit ({} bytes, ulimit -f) leaves no room for the node heaps "
            "of {} processes: raise it",
            members_[0].file_bytes_max, members_.size());
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (i != self_ && members_[i].token == door_.token()) {
            return Status(Code::invalid_argument,
                          "shared memory: one context takes part in a group more than once");
        }
    }
    if (self_ > 0) {
        taker_ = std::make_unique<Taker>(door_, members_[0], deadline_);
        return {};
    }
    Result<std::unique_ptr<SharedSegment>> made = SharedSegment::create(layout_.bytes());
    if (!made.ok()) {
        return made.status();
    }
    segment_ = std::move(*made);
    if (Status status = segment_->reserve(0, layout_.bells_bytes()); !status.ok()) {
        return status;
    }
    note_mapping(door_.token(), segment_);
    giver_ = std::make_unique<Giver>(door_, *segment_, members_, deadline_);
    return {};
}

std::optional<Bootstrap::Segments> Bootstrap::give(Clock::time_point until) {
    std::optional<Status> ended = giver_->step(until);
    if (!ended) {
        return std::nullopt;
    }
    return ended->ok() ? Segments(std::move(segment_)) : Segments(std::move(*ended));
}

std::optional<Bootstrap::Segments> Bootstrap::take(Clock::time_point until) {
    std::optional<Result<Letter>> ended = taker_->step(until);
    if (!ended) {
        return std::nullopt;
    }
    if (!ended->ok()) {
        return ended->status();
    }
    return map_once(members_[0].token, layout_.bytes(), [&] {
        return SharedSegment::join(std::move((*ended)->file), layout_.bytes());
    });
}

} // namespace ucg::shm
