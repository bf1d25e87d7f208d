#include "ucg_coll/transport/shm/help.hpp"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <utility>

namespace ucg::transport {
namespace {

/// After so many looks in vain at what others are to do a rank asks whether they still exist.
constexpr std::uint32_t kLooksUntilAsked = 4096;

/// An Exposed::sequence that no collective has: its rank has given up.
constexpr std::uint64_t kGivenUp = ~std::uint64_t{0};

/// In Exposed::sequence plan + 1 lies above sequence number + 1, which needs 33 bits: so both are
/// written and read together.
constexpr unsigned kPlanShift = 40;

/// Returns the Exposed::sequence of a collective.
std::uint64_t sequence_word(std::uint32_t sequence, std::uint16_t plan) {
    return (std::uint64_t{plan} + 1) << kPlanShift | (std::uint64_t{sequence} + 1);
}
/// Returns the collective's sequence number + 1; 0 if no collective was begun.
std::uint64_t sequence_part(std::uint64_t word) {
    return word & ((std::uint64_t{1} << kPlanShift) - 1);
}

shm::UnitWord::Name name_of(std::uint32_t sequence) {
    return shm::UnitWord::Name::of(sequence);
}

std::vector<Asks::Site> sites_of_asks(std::span<const HelpSite> sites) {
    std::vector<Asks::Site> all;
    all.reserve(sites.size());
    for (const HelpSite& site : sites) {
        all.push_back({site.segment, site.head});
    }
    return all;
}

} // namespace

ShmHelp::ShmHelp(std::span<const Rank> ranks, std::vector<HelpSite> sites, std::uint32_t self,
                 std::uint32_t outstanding_max, std::uint32_t words_each, shm::Heap& heap,
                 shm::ReadableMemory& readable, FlagSlotRoom& flag_slots)
    : ranks_(ranks.begin(), ranks.end()), sites_(std::move(sites)), self_(self),
      mask_(outstanding_max - 1), words_each_(words_each), heap_(heap), readable_(readable),
      flag_slots_(flag_slots), asks_(sites_of_asks(sites_), self, heap) {}

std::uint32_t ShmHelp::index_of(Rank rank) const {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    UCG_DEBUG_ASSERT(found != ranks_.end() && *found == rank);
    return static_cast<std::uint32_t>(found - ranks_.begin());
}

/// Asks the kernel each time. Other memory may lie at that address than last time; and while a
/// message that cannot be read is sent another way, a unit that cannot be copied fails the group.
bool ShmHelp::reached(const std::byte* data, std::uint64_t bytes) {
    if (heap_.locate(data, bytes).has_value()) {
        return true;
    }
    readable_.forget(data, bytes);
    return readable_.has(data, bytes);
}

/// Stores the entry's sequence last: a rank that acquires it finds the rest. Sequentially
/// consistent with abandon() of others, so that one of the two sees the other.
void ShmHelp::begin(const HelpedCall& call) {
    if (abandoned_) {
        return;
    }
    if (calls_.empty()) { // Most groups never get here.
        calls_.resize(std::size_t{mask_} + 1);
        owed_.reserve(calls_.size()); // To take a unit needs no memory then.
        earlier_sequences_.resize(calls_.size() * sites_.size());
    }
    note_earlier_sequences(call.sequence);
    call_at(call.sequence) = call;
    Exposed& own = entry(self_, call.sequence);
    const std::pair<std::byte*, std::uint64_t> buffers[] = {{call.input, call.input_bytes},
                                                            {call.output, call.output_bytes}};
    for (std::size_t i = 0; i < std::size(buffers); ++i) {
        const auto [data, bytes] = buffers[i];
        const auto place = bytes == 0 ? std::nullopt : heap_.locate(data, bytes);
        own.place[i].store(place ? place->offset * 2 : 0, std::memory_order_relaxed);
        own.address[i].store(reinterpret_cast<std::uintptr_t>(data), std::memory_order_relaxed);
    }
    shm::UnitWord* const words =
        sites_[self_].words + std::size_t{call.sequence & mask_} * words_each_;
    for (std::uint32_t i = 0; i < words_each_; ++i) {
        words[i].open(name_of(call.sequence));
    }
    own.sequence.store(sequence_word(call.sequence, call.plan), std::memory_order_seq_cst);
    if (flag_slots_.wakes()) {
        flag_slots_.wake(shm::Awaits::message);
    }
}

/// Notes what the entries of all ranks say. No part that names this rank is over before it begins,
/// so a sequence number that another rank has stored by then and that is not this collective's is
/// an earlier one's, however long ago that was: sequence numbers wrap around.
void ShmHelp::note_earlier_sequences(std::uint32_t sequence) {
    for (std::uint32_t i = 0; i < sites_.size(); ++i) {
        const std::uint64_t found =
            sequence_part(entry(i, sequence).sequence.load(std::memory_order_relaxed));
        earlier_sequence(i, sequence) = found == std::uint64_t{sequence} + 1 ? 0 : found;
    }
}

/// Returns whether that rank has begun the collective. REQUIRES: this rank has begun it.
ShmHelp::Begun ShmHelp::begun(std::uint32_t index, std::uint32_t sequence) {
    const std::uint64_t read = entry(index, sequence).sequence.load(std::memory_order_seq_cst);
    if (read == kGivenUp) {
        return Begun::given_up;
    }
    const std::uint64_t found = sequence_part(read);
    if (found == std::uint64_t{sequence} + 1) {
        return Begun::yes;
    }
    // A rank that lags may have come to an earlier one only after this rank had begun.
    const auto ahead =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(found) - (sequence + 1));
    return found == 0 || ahead < 0 || found == earlier_sequence(index, sequence) ? Begun::no
                                                                                 : Begun::long_ago;
}

bool ShmHelp::contradicts(std::uint32_t index, std::uint64_t stamp) const {
    const auto sequence = static_cast<std::uint32_t>(stamp >> 32U);
    const std::uint64_t own = sequence_word(sequence, plan_of(static_cast<std::uint16_t>(stamp)));
    const std::uint64_t found = entry(index, sequence).sequence.load(std::memory_order_relaxed);
    // Without a plan it tells of exposed buffers.
    if (found == own || sequence_part(found) != sequence_part(own) || found >> kPlanShift == 0) {
        return false;
    }
    // One that this rank has begun, too, was 2^32 collectives ago.
    const HelpedCall* const latest = calls_.empty() ? nullptr : &calls_[sequence & mask_];
    return latest == nullptr || found != sequence_word(latest->sequence, latest->plan);
}

bool ShmHelp::all_begun(const HelpedPart& part, std::uint32_t sequence) {
    for (const Rank rank : part.named) {
        if (!has_begun(index_of(rank), sequence)) {
            return false;
        }
    }
    const std::uint64_t own = sequence_word(sequence, call_at(sequence).plan);
    for (const Rank rank : part.named) {
        const std::uint32_t index = index_of(rank);
        const Begun begun = this->begun(index, sequence);
        if (begun == Begun::given_up) {
            give_up(rank);
            return false;
        }
        const std::uint64_t found = entry(index, sequence).sequence.load(std::memory_order_relaxed);
        if (sequence_part(found) == sequence_part(own) && found != own) {
            fail(failure(Code::disagreement,
                         "shared memory: rank {} began another collective than rank {}, or with "
                         "another count, datatype, root or MPI_IN_PLACE",
                         rank, ranks_[self_]));
            return false;
        }
    }
    return true;
}

bool ShmHelp::owes(const shm::UnitWord& units) const {
    return std::find(owed_.begin(), owed_.end(), &units) != owed_.end();
}

/// A caller that owes a unit of the part goes on with it after this look. So the store comes before
/// the load of the word, both in one order with those of a rank that gives up: it closes the word
/// before it looks who only asks.
Help::State ShmHelp::look(const HelpedPart& part, std::uint32_t sequence) {
    if (abandoned_ || !status_.ok()) {
        return State::broken;
    }
    const shm::UnitWord& units = word(part, sequence);
    const bool goes_on = owes(units);
    if (goes_on) [[unlikely]] {
        say_only_asks(false);
    }
    switch (begun(index_of(part.owner), sequence)) {
    case Begun::no: return waiting(State::waits, part, sequence);
    case Begun::long_ago: return State::over; // Its owner has found it so.
    case Begun::given_up: give_up(part.owner); return State::broken;
    case Begun::yes: break;
    }
    const auto counts = units.look(name_of(sequence),
                                   goes_on ? std::memory_order_seq_cst : std::memory_order_acquire);
    if (!counts) {
        return State::over; // The owner has begun a later collective.
    }
    if (counts->closed) {
        give_up(part.owner);
        return State::broken;
    }
    if (counts->done == part.units) {
        return State::over;
    }
    if (counts->taken == part.units) {
        return waiting(State::taken, part, sequence);
    }
    if (!all_begun(part, sequence)) {
        return status_.ok() ? waiting(State::waits, part, sequence) : State::broken;
    }
    // The part's owner does it in any case, and asks for what it cannot copy.
    const bool others_do = asks_ever_ && part.owner != ranks_[self_] && !reaches(part);
    return others_do ? waiting(State::waits, part, sequence) : State::ready;
}

/// Returns whether the kernel lets this rank copy from and to all ranks that the part names, as far
/// as is known.
bool ShmHelp::reaches(const HelpedPart& part) const {
    return std::all_of(part.named.begin(), part.named.end(), [this](Rank rank) {
        const std::uint32_t index = index_of(rank);
        const shm::PeerReach reach = reach_of(index);
        return index == self_ || (reach.reads() && reach.writes());
    });
}

void ShmHelp::give_up(Rank rank) {
    fail(failure(Code::io_error, "shared memory: a collective of rank {} and others has failed",
                 rank));
}

/// Asks, once in many calls, whether the processes of the others still exist, since one that has
/// ended finishes nothing. It asks for all ranks, whatever the caller waits for: looks at several
/// parts alternate, and each time to ask may be one part's.
void ShmHelp::ask_now_and_then() {
    if (++looks_in_vain_ % (flag_slots_.sleeps() ? kLooksAsleep : kLooksUntilAsked) != 0) {
        return;
    }
    for (std::uint32_t index = 0; index < sites_.size(); ++index) {
        if (index != self_ && !ended(index) && gone(index)) {
            ended_ |= std::uint32_t{1} << index;
        }
    }
}

/// Called after a look at the part in vain. Returns `state`, or State::broken if a rank that the
/// part names was known before to have ended. (It may have done all and left, but then the look
/// would have found that.)
Help::State ShmHelp::waiting(State state, const HelpedPart& part, std::uint32_t sequence) {
    for (std::size_t i = 0; ended_ != 0 && i < part.named.size(); ++i) {
        const Rank rank = part.named[i];
        const std::uint32_t index = index_of(rank);
        if (ended(index) && begun(index, sequence) != Begun::long_ago) {
            fail(failure(Code::io_error, "shared memory: process {} is gone, with rank {}'s part",
                         sites_[index].head->process.process, rank));
            return State::broken;
        }
    }
    ask_now_and_then();
    return state;
}

std::optional<std::uint32_t> ShmHelp::take(const HelpedPart& part, std::uint32_t sequence) {
    shm::UnitWord& units = word(part, sequence);
    if (!owed_.empty()) { // This rank has asked for those; before the swap, which releases it.
        say_only_asks(false);
    }
    const std::optional<std::uint32_t> unit = units.take(name_of(sequence), part.units);
    if (unit) {
        owed_.push_back(&units);
    } else if (!owed_.empty()) {
        say_only_asks(true);
    }
    return unit;
}

void ShmHelp::unit_done(const HelpedPart& part, std::uint32_t sequence) {
    shm::UnitWord& units = word(part, sequence);
    const auto owed = std::find(owed_.begin(), owed_.end(), &units);
    if (owed == owed_.end()) {
        return; // abandon() has counted it.
    }
    owed_.erase(owed);
    if (units.unit_done() == part.units && flag_slots_.wakes()) {
        flag_slots_.wake(shm::Awaits::message);
    }
    if (!owed_.empty()) { // This rank has asked for those.
        say_only_asks(true);
    }
}

/// Returns where the buffer lies. REQUIRES: this rank owes a unit that names the owner, whose entry
/// stays as long as that.
shm::RemoteBytes ShmHelp::bytes_of(std::uint32_t index, graph::BufferKind buffer,
                                   std::uint32_t sequence) const {
    const Exposed& from = entry(index, sequence);
    const auto i = static_cast<std::size_t>(buffer);
    const std::uint64_t place = from.place[i].load(std::memory_order_relaxed);
    return {from.address[i].load(std::memory_order_relaxed), place == 0 ? 0 : place / 2 + 1};
}

std::byte* ShmHelp::mapped(Rank owner, graph::BufferKind buffer, std::uint32_t sequence) {
    const std::uint32_t index = index_of(owner);
    const shm::RemoteBytes bytes = bytes_of(index, buffer, sequence);
    return bytes.place == 0 ? nullptr : sites_[index].segment + (bytes.place - 1);
}

Help::Copied ShmHelp::read(Rank owner, graph::BufferKind buffer, std::uint32_t sequence,
                           std::uint64_t offset, std::span<std::byte> to) {
    const std::uint32_t index = index_of(owner);
    const shm::PeerReach reach = reach_of(index);
    const shm::RemoteBytes from = bytes_of(index, buffer, sequence).at(offset);
    if (reach.pulls_from(from)) {
        const Status status = shm::pull(reach, from, to.data(), to.size());
        if (!refused(status)) {
            return status.ok() ? Copied::yes : Copied::no;
        }
    }
    bool asked = false;
    const Asks::Place place = {index, buffer, sequence, offset};
    const Asks::Answer answer = asks_.read(place, to.data(), to.size(), asked);
    return heard(answer, asked, index);
}

Help::Copied ShmHelp::write(Rank owner, graph::BufferKind buffer, std::uint32_t sequence,
                            std::uint64_t offset, std::span<const std::byte> from) {
    const std::uint32_t index = index_of(owner);
    const shm::PeerReach reach = reach_of(index);
    const shm::RemoteBytes to = bytes_of(index, buffer, sequence).at(offset);
    if (reach.pushes_to(to)) {
        const Status status = shm::push(reach, to, from.data(), from.size());
        if (!refused(status)) {
            return status.ok() ? Copied::yes : Copied::no;
        }
    }
    bool asked = false;
    const Asks::Place place = {index, buffer, sequence, offset};
    const Asks::Answer answer = asks_.write(place, from.data(), from.size(), asked);
    return heard(answer, asked, index);
}

/// Returns whether the kernel has refused the copy, so that the owner is to be asked. Anything else
/// that went wrong ends the group.
bool ShmHelp::refused(const Status& status) {
    if (shm::is_refusal(status)) {
        shm::tell_of_refusal(status);
        return true;
    }
    if (!status.ok()) {
        fail(failure(Code::io_error, "shared memory: {}", status.message()));
    }
    return false;
}

/// Returns what an ask has led to, and fails if the asked process has ended, which answers nothing.
Help::Copied ShmHelp::heard(Asks::Answer answer, bool asked, std::uint32_t index) {
    asks_ever_ = true;
    if (asked && flag_slots_.wakes()) {
        flag_slots_.wake(shm::Awaits::message);
    }
    if (answer == Asks::Answer::no_memory) {
        fail(failure(
            Code::out_of_memory,
            "shared memory: the kernel does not copy from or to a peer, and there is no "
            "memory left by which that could do it: raise the limit, or set UCG_HELP_PEERS=never"));
        return Copied::no;
    }
    if (answer == Asks::Answer::yes) {
        return Copied::yes;
    }
    if (ended(index)) { // It was known before this look at the answer.
        fail(failure(Code::io_error,
                     "shared memory: process {} is gone, which was asked for bytes of a collective",
                     sites_[index].head->process.process));
        return Copied::no;
    }
    ask_now_and_then();
    say_only_asks(true);
    return Copied::later;
}

/// Answers the asks of all peers. The unit for which a peer asks is not done, so the collective is
/// not over and the buffers are there; unless this rank has given up, which the peer finds.
unsigned ShmHelp::answer_all() {
    const unsigned answered = asks_.answer([this](std::uint32_t sequence,
                                                  graph::BufferKind buffer) -> std::byte* {
        if (abandoned_ || !status_.ok() || calls_.empty()) {
            return nullptr;
        }
        const HelpedCall& call = call_at(sequence);
        const bool under_way = call.sequence == sequence && !call.parts.empty();
        return !under_way ? nullptr : buffer == graph::BufferKind::input ? call.input : call.output;
    });
    if (answered > 0 && flag_slots_.wakes()) {
        flag_slots_.wake(shm::Awaits::message);
    }
    return answered;
}

/// Fails the group. Called before the unit that failed counts as done, so nobody takes its part for
/// over.
void ShmHelp::fail(Status status) {
    if (status_.ok()) {
        status_ = std::move(status);
        log(LogLevel::error, "{}", status_.message());
        close_all();
    }
}

/// Gives up all calls under way: says so in their entries, and closes the words of their parts. The
/// stores are in one order with all beginnings: an owner that has not begun yet finds, as any rank
/// that helps it does, that this rank has given up. An owner that gives up, too, may not have
/// closed its own word yet.
void ShmHelp::close_all() {
    for (const HelpedCall& call : calls_) {
        if (call.parts.empty()) {
            continue;
        }
        entry(self_, call.sequence).sequence.store(kGivenUp, std::memory_order_seq_cst);
        for (const HelpedPart& part : call.parts) {
            if (has_begun(index_of(part.owner), call.sequence)) {
                word(part, call.sequence).close(name_of(call.sequence));
            }
        }
    }
}

/// Returns whether nobody is inside a unit of the part any more, although some are not done. A rank
/// whose process has ended says nothing, nor does one that has only asked, before it comes back;
/// one that has given up copies nothing, but says so. The word does not tell which rank is inside a
/// unit, so the others get their time, as do ranks of which the kernel does not tell whether they
/// exist. But each rank is inside one unit of a part at most: if more units are not done than ranks
/// are away, somebody who will finish is inside one.
bool ShmHelp::is_over(const HelpedPart& part, std::uint32_t sequence, unsigned not_done,
                      bool waited_long) const {
    unsigned away = 0;
    bool others = false;
    for (const Rank rank : part.named) {
        const std::uint32_t index = index_of(rank);
        if (index == self_) {
            continue;
        }
        if (only_asks(index) || gone(index) || (waited_long && !askable(index))) {
            ++away;
        } else if (entry(index, sequence).sequence.load(std::memory_order_seq_cst) != kGivenUp) {
            others = true;
        }
    }
    return away >= not_done && (!others || waited_long);
}

/// Gives up, and waits for the units that others are doing: each is inside one at most.
void ShmHelp::abandon() {
    constexpr auto kPatience = std::chrono::seconds(1); // Yields may take microseconds or slices.
    const auto began = std::chrono::steady_clock::now();
    if (std::exchange(abandoned_, true)) {
        return;
    }
    close_all();
    for (shm::UnitWord* units : owed_) { // This rank does not go on with these.
        units->unit_done();
    }
    owed_.clear();
    for (HelpedCall& call : calls_) {
        for (const HelpedPart& part : call.parts) {
            for (unsigned i = 0;; ++i) {
                const auto counts = word(part, call.sequence).look(name_of(call.sequence));
                if (!counts || counts->taken == counts->done) {
                    break;
                }
                if (i % 64 == 0 && is_over(part, call.sequence, counts->taken - counts->done,
                                           std::chrono::steady_clock::now() - began >= kPatience)) {
                    break;
                }
                ::sched_yield();
            }
        }
        call.parts = {};
    }
}

} // namespace ucg::transport
