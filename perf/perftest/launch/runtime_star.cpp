#include "perf/perftest/launch/runtime_star.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ucg::perftest {

namespace {

/// The longest text of an exchange. A process gives some KiB; a longer text is not from this
/// program.
constexpr std::uint64_t kTextMax = std::uint64_t{1} << 30;
/// With a progress function no process sleeps. Where processes outnumber processors they must
/// yield.
constexpr unsigned kTurnsPerYield = 64;

void append_number(std::string& text, std::uint64_t number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Removes the number at the beginning of `text` and returns it. REQUIRES: `text` is long enough.
std::uint64_t take_number(std::string_view& text) {
    std::uint64_t number = 0;
    std::memcpy(&number, text.data(), sizeof(number));
    text.remove_prefix(sizeof(number));
    return number;
}

std::string frame(std::string_view text) {
    std::string bytes;
    append_number(bytes, text.size());
    return bytes.append(text);
}

/// What remains to be sent to one peer and to be received from it. A message is a length, followed
/// by as many bytes.
class Transfer {
  public:
    Transfer(int fd, Rank peer, std::string_view out, bool expects)
        : fd_(fd), peer_(peer), out_(out), expects_(expects) {}

    Rank peer() const { return peer_; }
    bool done() const { return out_.empty() && (!expects_ || received()); }
    pollfd wanted() const {
        const int events = (out_.empty() ? 0 : POLLOUT) | (expects_ && !received() ? POLLIN : 0);
        return {.fd = fd_, .events = static_cast<short>(events), .revents = 0};
    }
    std::string text() && { return std::move(in_).substr(kHeader); }

    /// Moves what can be moved without waiting. Returns false when the peer is gone; what it said
    /// before, such as the reason, is received nevertheless.
    bool move() {
        if (!send_some()) {
            if (!expects_) {
                return false;
            }
            out_ = {};
        }
        return receive_some();
    }

  private:
    static constexpr std::size_t kHeader = sizeof(std::uint64_t);

    bool received() const { return in_.size() >= kHeader && filled_ == in_.size(); }

    bool send_some() {
        while (!out_.empty()) {
            const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0) {
                return errno == EAGAIN || errno == EINTR;
            }
            out_.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    bool receive_some() {
        while (expects_ && !received()) {
            if (in_.empty()) {
                in_.resize(kHeader);
            }
            const ssize_t got =
                ::recv(fd_, in_.data() + filled_, in_.size() - filled_, MSG_DONTWAIT);
            if (got <= 0) {
                return got < 0 && (errno == EAGAIN || errno == EINTR);
            }
            filled_ += static_cast<std::size_t>(got);
            if (filled_ == kHeader && in_.size() == kHeader) {
                std::string_view header = in_;
                const std::uint64_t length = take_number(header);
                if (length > kTextMax) {
                    return false;
                }
                in_.resize(kHeader + length);
            }
        }
        return true;
    }

    int fd_;
    Rank peer_;
    std::string_view out_;
    bool expects_;
    std::string in_;         ///< The header, then the text.
    std::size_t filled_ = 0; ///< Bytes of `in_` that have arrived.
};

/// Moves all transfers to their ends. Returns the rank that is gone, or kNoRank.
Rank move_all(std::vector<Transfer>& transfers, const std::function<void()>& progress) {
    std::vector<pollfd> waiting;
    for (unsigned turn = 1;; ++turn) {
        waiting.clear();
        for (Transfer& transfer : transfers) {
            if (transfer.done()) {
                continue;
            }
            if (!transfer.move()) {
                return transfer.peer();
            }
            if (!transfer.done()) {
                waiting.push_back(transfer.wanted());
            }
        }
        if (waiting.empty()) {
            return kNoRank;
        }
        if (!progress) {
            ::poll(waiting.data(), waiting.size(), -1);
            continue;
        }
        progress();
        if (turn % kTurnsPerYield == 0) {
            ::sched_yield();
        }
    }
}

/// Returns rank 0's answer: the rank that is lost (kNoRank: none), then each text behind its
/// length.
std::string answer(Rank lost, const std::vector<std::string>& texts) {
    std::string bytes;
    append_number(bytes, static_cast<std::uint64_t>(static_cast<std::int64_t>(lost)));
    for (const std::string& text : texts) {
        append_number(bytes, text.size());
        bytes += text;
    }
    return bytes;
}

} // namespace

StarRuntime::StarRuntime(Rank rank, Rank size, std::vector<int> lines)
    : rank_(rank), size_(size), lines_(std::move(lines)) {
    UCG_ASSERT(lines_.size() == static_cast<std::size_t>(rank == 0 ? size : 1));
}

StarRuntime::~StarRuntime() {
    for (const int line : lines_) {
        if (line >= 0) {
            ::close(line);
        }
    }
}

Status StarRuntime::lost(Rank rank) {
    lost_ = rank;
    return failure(Code::unreachable, "rank {} ended before the run did; its own message says why",
                   rank);
}

Result<std::vector<std::string>> StarRuntime::exchange(std::string_view mine,
                                                       const std::function<void()>& progress) {
    if (lost_ != kNoRank) {
        return lost(lost_);
    }
    return rank_ == 0 ? collect(mine, progress) : take_part(mine, progress);
}

Result<std::vector<std::string>> StarRuntime::collect(std::string_view mine,
                                                      const std::function<void()>& progress) {
    std::vector<Transfer> transfers;
    for (Rank rank = 1; rank < size_; ++rank) {
        transfers.emplace_back(lines_[static_cast<std::size_t>(rank)], rank, "", true);
    }
    const Rank gone = move_all(transfers, progress);
    std::vector<std::string> texts;
    if (gone == kNoRank) {
        texts.emplace_back(mine);
        for (Transfer& transfer : transfers) {
            texts.push_back(std::move(transfer).text());
        }
    }
    const std::string reply = frame(answer(gone, texts));
    transfers.clear();
    for (Rank rank = 1; rank < size_; ++rank) {
        if (rank != gone) {
            transfers.emplace_back(lines_[static_cast<std::size_t>(rank)], rank, reply, false);
        }
    }
    const Rank gone_now = move_all(transfers, progress);
    if (gone != kNoRank || gone_now != kNoRank) {
        return lost(gone != kNoRank ? gone : gone_now);
    }
    return texts;
}

Result<std::vector<std::string>> StarRuntime::take_part(std::string_view mine,
                                                        const std::function<void()>& progress) {
    const std::string message = frame(mine);
    std::vector<Transfer> transfers;
    transfers.emplace_back(lines_.front(), 0, message, true);
    if (move_all(transfers, progress) != kNoRank) {
        return lost(0);
    }
    const std::string reply = std::move(transfers.front()).text();
    std::string_view rest = reply;
    if (rest.size() < sizeof(std::uint64_t)) {
        return lost(0);
    }
    const auto gone = static_cast<Rank>(static_cast<std::int64_t>(take_number(rest)));
    if (gone != kNoRank) {
        return lost(gone);
    }
    std::vector<std::string> texts;
    while (rest.size() >= sizeof(std::uint64_t)) {
        const std::uint64_t length = std::min<std::uint64_t>(take_number(rest), rest.size());
        texts.emplace_back(rest.substr(0, length));
        rest.remove_prefix(length);
    }
    if (texts.size() != static_cast<std::size_t>(size_)) {
        return lost(0);
    }
    return texts;
}

} // namespace ucg::perftest
