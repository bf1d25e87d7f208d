// The part of ShmTransport that is about memory which ranks reach of one another: exposed buffers,
// and those of ranks that help one another; and what becomes of the memory when the group ends.
#include <algorithm>
#include <new>
#include <utility>

#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {

ShmTransport::~ShmTransport() {
    if (!established_) {
        return;
    }
    if (staging_.bytes() > 0) { // By the schedules' rules no peer reads it any more.
        heap_.retire({std::move(staging_)}, {});
    }
    // A peer that finds the marks of all others may use its memory anew, so that this rank looks at
    // it for the last time before it leaves its own.
    std::vector<shm::PeerReach> all = processes();
    for (std::uint32_t i = 0; i < sites_.size(); ++i) {
        if (i != self_) {
            const bool backed =
                peers_.has(i) && (!layout_.all_at_first() || peers_[i].outbox.has_backed());
            left_mark(sites_[i].lines, self_)
                .store(backed ? shm::LeftMark::left_pages : shm::LeftMark::left,
                       std::memory_order_release);
        }
    }
    left_mark(lines_.data(), self_).store(shm::LeftMark::left, std::memory_order_relaxed);
    const bool pages_added = (!layout_.all_at_first() && !peers_.made().empty()) ||
                             (flag_slots_.has_value() && flag_slots_->has_backed());
    const std::atomic<shm::LeftMark>* const marks = &left_mark(lines_.data(), 0);
    heap_.retire({std::move(lines_), std::move(pairs_),
                  help_.has_value() ? help_->give_back() : shm::Lease()},
                 {marks, static_cast<std::uint32_t>(ranks_.size()), pages_added, std::move(all)});
}

/// Returns where the rank of that index says that it looks no more at memory with those lines.
std::atomic<shm::LeftMark>& ShmTransport::left_mark(std::byte* lines, std::uint32_t index) const {
    return reinterpret_cast<std::atomic<shm::LeftMark>*>(lines + layout_.left_marks())[index];
}

/// Returns the processes of all ranks; none if they are not known, or there is no memory.
std::vector<shm::PeerReach> ShmTransport::processes() noexcept {
    try {
        std::vector<shm::PeerReach> processes;
        processes.reserve(sites_.size());
        for (const Site& site : sites_) {
            processes.push_back(process_of(site));
        }
        return processes;
    } catch (const std::bad_alloc&) {
        return {};
    }
}

void ShmTransport::make_help() {
    if (layout_.unit_words_each() == 0) {
        return;
    }
    std::vector<HelpSite> sites;
    for (const Site& site : sites_) {
        sites.push_back({site.segment,
                         reinterpret_cast<Exposed*>(site.lines + RegionLayout::exposed()),
                         reinterpret_cast<shm::UnitWord*>(site.lines + layout_.unit_words()),
                         &site.head(), access_to(site.head().ticket), lookups(site)});
    }
    help_.emplace(ranks_, std::move(sites), self_, options_.outstanding_max,
                  layout_.unit_words_each(), heap_, readable_, *flag_slots_);
}

bool reaches_all(shm::Heap& heap, std::span<const shm::AccessTicket> others) {
    return std::all_of(others.begin(), others.end(), [&](const shm::AccessTicket& ticket) {
        return heap.access_to(ticket).writes();
    });
}

bool ShmTransport::reaches_all() {
    std::vector<shm::AccessTicket> others;
    for (const Site& site : sites_) {
        if (&site != &sites_[self_]) {
            others.push_back(site.head().ticket);
        }
    }
    return transport::reaches_all(heap_, others);
}

/// Like compare_awaited(), for peers that are to begin a helped collective that this rank has
/// begun: they may have broken off, or be at another collective, which runs by messages or by the
/// flag slots.
void ShmTransport::compare_begun() {
    if (!help_.has_value()) {
        return;
    }
    help_->each_awaited([&](std::uint32_t index, const HelpedCall& call) {
        if (abandoned_ || lost(index)) {
            return;
        }
        const std::uint64_t own = stamp_of({0, call.sequence, call.plan});
        bool found = contradicts(index, own);
        flag_slots_->each_stamp(
            index, [&](std::uint64_t stamp) { found = found || contradict(stamp, own); });
        if (found) {
            fail(Code::disagreement, index);
        }
    });
}

bool ShmTransport::is_mapped_by_peers(const std::byte* data, std::uint64_t bytes) const {
    return heap_.locate(data, bytes).has_value();
}

/// Returns an Exposed::place: the buffer's offset in this heap's segment, doubled, plus one for a
/// staging buffer; 0 if it does not lie there (at offset 0 there is no buffer, but a line).
std::uint64_t ShmTransport::place_of(const SharedBuffer& buffer) const {
    const auto place = buffer.data == nullptr ? std::nullopt : heap_.locate(buffer.data, 1);
    return place ? place->offset * 2 + (buffer.staging_buffer ? 1 : 0) : 0;
}

bool ShmTransport::expose(std::uint32_t sequence, const SharedBuffers& buffers,
                          std::uint64_t staging_bytes) {
    if (abandoned_) [[unlikely]] { // Others find that this rank has given up.
        return false;
    }
    if (Status status = staging_.back(staging_bytes); !status.ok()) [[unlikely]] {
        log(LogLevel::error, "{}", status.message());
        flag_slots_->lose(shm::Loss::memory);
        return !lost();
    }
    Exposed& entry = exposed(sites_[self_], sequence);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        entry.place[i].store(place_of(buffers[i]), std::memory_order_relaxed);
    }
    entry.sequence.store(std::uint64_t{sequence} + 1, std::memory_order_release);
    return true;
}

bool ShmTransport::intact() {
    return !abandoned_ && (!shm::lost_meanwhile(flag_slots_->loss_word()) || !lost());
}

SharedBuffer ShmTransport::peer_buffer(Rank owner, graph::BufferKind buffer,
                                       std::uint32_t sequence) const {
    const Site& site = sites_[index_of(owner)];
    const Exposed& entry = exposed(site, sequence);
    if (entry.sequence.load(std::memory_order_acquire) != std::uint64_t{sequence} + 1) {
        return {};
    }
    const std::uint64_t place =
        entry.place[static_cast<std::size_t>(buffer)].load(std::memory_order_relaxed);
    return place == 0 ? SharedBuffer{} : SharedBuffer{site.segment + place / 2, place % 2 == 1};
}

} // namespace ucg::transport
