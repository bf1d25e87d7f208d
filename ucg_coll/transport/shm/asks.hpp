// Bytes of peers that this rank would copy, but the kernel does not let it: it asks their owner to
// copy them, by way of memory of its own that both map (PROTOCOL.md, "Units that whoever comes
// does").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/heap.hpp"
#include "ucg_coll/transport/shm/region_layout.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// One rank's asks of its peers, and its answers to theirs.
class Asks {
  public:
    /// Where the memory of a rank of the host is mapped here.
    struct Site {
        std::byte* segment = nullptr;
        RegionHead* head = nullptr;
    };

    /// `self` is the own index on the host, `heap` the own heap, which must outlive this.
    Asks(std::vector<Site> sites, std::uint32_t self, shm::Heap& heap)
        : sites_(std::move(sites)), self_(self), heap_(heap) {}

    /// Bytes of a peer's buffer.
    struct Place {
        std::uint32_t index = 0; ///< Of the peer, on the host.
        graph::BufferKind buffer = graph::BufferKind::input;
        std::uint32_t sequence = 0; ///< Of the collective.
        std::uint64_t offset = 0;   ///< In the buffer.

        bool operator==(const Place&) const = default;
    };

    enum class Answer : std::uint8_t { yes, later, no_memory };
    /// Has a peer copy bytes of its buffer to `to`. To be called again with the same arguments
    /// until it does not return `later`: one place at a time is asked for, others wait. Sets
    /// `asked` if it has asked the peer, who may have to be woken.
    Answer read(const Place& from, std::byte* to, std::uint64_t bytes, bool& asked) {
        return step(from, to, bytes, false, asked);
    }
    /// Like read(), but has the peer copy `from` to its buffer.
    Answer write(const Place& to, const std::byte* from, std::uint64_t bytes, bool& asked) {
        return step(to, const_cast<std::byte*>(from), bytes, true, asked);
    }

    /// Returns whether a peer has asked since the last answer().
    bool asked() const { return asks().load(std::memory_order_acquire) != seen_; }
    /// Copies what peers have asked for. `own(sequence, buffer)` returns the own buffer, null if
    /// that collective is not in progress here. Returns how many asks were answered.
    template <typename Own>
    unsigned answer(Own own) {
        seen_ = asks().load(std::memory_order_acquire);
        unsigned answered = 0;
        for (const Site& site : sites_) {
            Ask& ask = site.head->ask;
            // Before the word: an ask that this rank has answered is either still the latest
            // answered, or the word of a later one has come with a later answer.
            const std::uint64_t answered_word = ask.answered.load(std::memory_order_acquire);
            const std::uint64_t word = ask.word.load(std::memory_order_acquire);
            // An ask of another rank may be changed by its asker at any time.
            if ((word & kIndexMask) != self_ || word >> kIndexBits == 0 || word == answered_word) {
                continue;
            }
            std::byte* const buffer = own(ask.sequence, static_cast<graph::BufferKind>(ask.buffer));
            if (buffer != nullptr) {
                copy(ask, buffer, site.segment);
                ask.answered.store(word, std::memory_order_release);
                ++answered;
            }
        }
        return answered;
    }

    /// Gives away the memory through which bytes go; peers may look there until they end.
    shm::Lease give_back() { return std::move(room_); }

  private:
    static constexpr unsigned kIndexBits = 16;
    static constexpr std::uint64_t kIndexMask = (1U << kIndexBits) - 1;
    static constexpr std::uint64_t kRoomBytes = 64 << 10;

    std::atomic<std::uint64_t>& asks() const { return sites_[self_].head->asks; }
    Ask& own_ask() const { return sites_[self_].head->ask; }
    Answer step(const Place& place, std::byte* here, std::uint64_t bytes, bool writes, bool& asked);
    void ask(const std::byte* here, std::uint64_t bytes);
    static void copy(const Ask& ask, std::byte* buffer, std::byte* segment);

    std::vector<Site> sites_;
    std::uint32_t self_;
    shm::Heap& heap_;
    shm::Lease room_;   ///< Through which bytes go to and from peers.
    bool busy_ = false; ///< A read() or write() is not over; these say which.
    bool writes_ = false;
    Place place_;
    std::uint64_t done_ = 0;  ///< Bytes of it that are copied.
    std::uint64_t piece_ = 0; ///< Bytes that the peer was asked for last.
    std::uint64_t word_ = 0;  ///< Ask::word of the latest ask.
    std::uint64_t seen_ = 0;  ///< The own RegionHead::asks at the last answer().
};

} // namespace ucg::transport
