// How the ranks of a group on one host do what others of them still owe (PROTOCOL.md, "Units that
// whoever comes does").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shm/heap.hpp"
#include "shm/peer_copy.hpp"
#include "shm/readable.hpp"
#include "shm/unit_word.hpp"
#include "ucg_coll/transport/shm/asks.hpp"
#include "ucg_coll/transport/shm/flag_slot_room.hpp"
#include "ucg_coll/transport/shm/region_layout.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// Where the memory of a rank that is used for this is mapped here. Not owned.
struct HelpSite {
    std::byte* segment = nullptr;
    Exposed* entries = nullptr;     ///< By the collective's sequence number, modulo their number.
    shm::UnitWord* words = nullptr; ///< `words_each` for each entry.
    RegionHead* head = nullptr;
    shm::PeerAccess* access = nullptr; ///< Null: the kernel's copies are switched off.
    shm::PageLookups lookups = {};
};

/// Help among the ranks of a group on one host.
class ShmHelp final : public Help {
  public:
    /// `ranks` are those on the host, rising; `sites` are theirs; `self` is the own index.
    /// `outstanding_max` is the number of entries, a power of two. `heap`, `readable` and
    /// `flag_slots` must outlive it.
    ShmHelp(std::span<const Rank> ranks, std::vector<HelpSite> sites, std::uint32_t self,
            std::uint32_t outstanding_max, std::uint32_t words_each, shm::Heap& heap,
            shm::ReadableMemory& readable, FlagSlotRoom& flag_slots);

    bool reached(const std::byte* data, std::uint64_t bytes) override;
    void begin(const HelpedCall& call) override;
    void end(std::uint32_t sequence) override { call_at(sequence).parts = {}; }
    State look(const HelpedPart& part, std::uint32_t sequence) override;
    std::optional<std::uint32_t> take(const HelpedPart& part, std::uint32_t sequence) override;
    void unit_done(const HelpedPart& part, std::uint32_t sequence) override;
    std::byte* mapped(Rank owner, graph::BufferKind buffer, std::uint32_t sequence) override;
    Copied read(Rank owner, graph::BufferKind buffer, std::uint32_t sequence, std::uint64_t offset,
                std::span<std::byte> to) override;
    Copied write(Rank owner, graph::BufferKind buffer, std::uint32_t sequence, std::uint64_t offset,
                 std::span<const std::byte> from) override;

    /// Copies what peers ask of this rank, which the kernel does not let them copy. Returns how
    /// many asks it has answered.
    unsigned answer() { return asks_.asked() ? answer_all() : 0; }
    /// Gives away memory at which peers may look until they end; perhaps none.
    shm::Lease give_back() { return asks_.give_back(); }

    /// Ends all collectives, so that the callers get their buffers back: nobody reads or writes
    /// these any more when this returns.
    void abandon();
    /// Returns why this rank helps nobody any more; ok while it does.
    const Status& status() const { return status_; }

    /// Calls visit(index, call) for each rank that is to begin a collective which this one has
    /// begun.
    template <typename Visit>
    void each_awaited(Visit visit) {
        for (const HelpedCall& call : calls_) {
            for (const HelpedPart& part : call.parts) {
                for (const Rank rank : part.named) {
                    if (!has_begun(index_of(rank), call.sequence)) {
                        visit(index_of(rank), call);
                    }
                }
            }
        }
    }

    /// Returns whether that rank has begun a collective of that stamp_of()'s number in which ranks
    /// help one another, with another plan.
    bool contradicts(std::uint32_t index, std::uint64_t stamp) const;

  private:
    /// Whether a rank has begun a collective, as its entry says, which is used again and again: not
    /// yet; yes; it has begun a later one; it has given up.
    enum class Begun : std::uint8_t { no, yes, long_ago, given_up };

    HelpedCall& call_at(std::uint32_t sequence) { return calls_[sequence & mask_]; }
    /// Returns what the rank's entry said when the own call began, if that was not of this call.
    std::uint64_t& earlier_sequence(std::uint32_t index, std::uint32_t sequence) {
        return earlier_sequences_[std::size_t{sequence & mask_} * sites_.size() + index];
    }
    void note_earlier_sequences(std::uint32_t sequence);
    Exposed& entry(std::uint32_t index, std::uint32_t sequence) const {
        return sites_[index].entries[sequence & mask_];
    }
    shm::UnitWord& word(const HelpedPart& part, std::uint32_t sequence) const {
        return sites_[index_of(part.owner)]
            .words[std::size_t{sequence & mask_} * words_each_ + part.number];
    }
    std::uint32_t index_of(Rank rank) const;
    Begun begun(std::uint32_t index, std::uint32_t sequence);
    bool has_begun(std::uint32_t index, std::uint32_t sequence) {
        return begun(index, sequence) != Begun::no;
    }
    bool all_begun(const HelpedPart& part, std::uint32_t sequence);
    State waiting(State state, const HelpedPart& part, std::uint32_t sequence);
    bool is_over(const HelpedPart& part, std::uint32_t sequence, unsigned not_done,
                 bool waited_long) const;
    void ask_now_and_then();
    /// Says whether this rank is inside no unit but those that wait for an answer: then it copies
    /// nothing from or to peers before it has said the contrary.
    void say_only_asks(bool only) {
        sites_[self_].head->only_asks.store(only ? 1 : 0, std::memory_order_seq_cst);
    }
    bool only_asks(std::uint32_t index) const {
        return sites_[index].head->only_asks.load(std::memory_order_seq_cst) != 0;
    }
    bool owes(const shm::UnitWord& units) const;
    bool ended(std::uint32_t index) const { return (ended_ >> index & 1U) != 0; }
    bool askable(std::uint32_t index) const { return shm::tells_end(reach_of(index)); }
    bool gone(std::uint32_t index) const { return shm::has_ended(reach_of(index)); }
    shm::RemoteBytes bytes_of(std::uint32_t index, graph::BufferKind buffer,
                              std::uint32_t sequence) const;
    shm::PeerReach reach_of(std::uint32_t index) const {
        const HelpSite& site = sites_[index];
        return {site.segment, site.head->ticket, site.access, site.head->process, site.lookups};
    }
    bool reaches(const HelpedPart& part) const;
    bool refused(const Status& status);
    Copied heard(Asks::Answer answer, bool asked, std::uint32_t index);
    unsigned answer_all();
    void give_up(Rank rank);
    void fail(Status status);
    void close_all();

    std::vector<Rank> ranks_;
    std::vector<HelpSite> sites_;
    std::uint32_t self_;
    std::uint32_t mask_;
    std::uint32_t words_each_;
    shm::Heap& heap_;
    shm::ReadableMemory& readable_;
    FlagSlotRoom& flag_slots_;
    std::vector<HelpedCall> calls_; ///< By sequence number; those that have not ended have parts.
    std::vector<std::uint64_t> earlier_sequences_; ///< See earlier_sequence().
    Asks asks_;
    bool asks_ever_ = false;           ///< The kernel has refused this rank something.
    std::vector<shm::UnitWord*> owed_; ///< Words of units that this rank has taken and not done.
    std::uint32_t looks_in_vain_ = 0;
    std::uint32_t ended_ = 0; ///< A bit for each rank whose process was found to have ended.
    static_assert(graph::kHelpedRanksMax <= 32);
    Status status_;
    bool abandoned_ = false;
};

} // namespace ucg::transport
