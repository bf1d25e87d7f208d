// Fuzzes the words by which processes count for one another, against models of them. The first byte
// selects one: lines of the short lane whose words the network delivers in any order ('l'), credits
// and counts of lines that come late, come twice, or are impossible ('c'), and words of units that
// ranks take from one another ('u'). Every further byte is one step.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "shm/unit_word.hpp"
#include "ucg_coll/transport/ucx/lines.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"

namespace ucg::transport::ucx {
namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// Gives out the bytes that are left, one after another; zeros at the end.
class Steps {
  public:
    explicit Steps(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
    bool ended() const { return rest_.empty(); }
    std::uint8_t next() {
        const std::uint8_t byte = rest_.empty() ? std::uint8_t{0} : rest_.front();
        rest_ = rest_.subspan(rest_.empty() ? 0 : 1);
        return byte;
    }

  private:
    std::span<const std::uint8_t> rest_;
};

/// A ring of lines with a network between its ends that may hold words back as long as it likes.
class Lines {
  public:
    void send(Steps& steps) {
        if (!writer_.has_room()) {
            return;
        }
        RingLine line;
        auto* bytes = reinterpret_cast<std::uint8_t*>(&line);
        for (unsigned count = steps.next() % sizeof(RingLine); count > 0; --count) {
            const std::size_t at = steps.next() % sizeof(RingLine);
            bytes[at] = steps.next();
        }
        writer_.seal(line);
        for (std::size_t at = 0; at < sizeof(RingLine); at += sizeof(std::uint64_t)) {
            Word word{writer_.offset() + at, 0};
            std::memcpy(&word.value, bytes + at, sizeof(word.value));
            under_way_.push_back(word);
        }
        places_.push_back(writer_.offset());
        sent_.push_back(line);
        writer_.advance();
    }

    void deliver(unsigned which) {
        if (!under_way_.empty()) {
            const auto word = under_way_.begin() + which % under_way_.size();
            std::memcpy(reinterpret_cast<std::byte*>(ring_.data()) + word->offset, &word->value,
                        sizeof(word->value));
            under_way_.erase(word);
        }
    }

    /// Takes a line exactly when all of its words have arrived, the oldest line first.
    void take() {
        const bool whole = !sent_.empty() &&
                           std::memcmp(reinterpret_cast<std::byte*>(ring_.data()) + places_.front(),
                                       &sent_.front(), sizeof(RingLine)) == 0;
        require(!whole || reader_.has_news());
        const std::optional<RingLine> line = reader_.take();
        require(line.has_value() == whole);
        if (line) {
            require(std::memcmp(&*line, &sent_.front(), sizeof(RingLine)) == 0);
            sent_.pop_front();
            places_.pop_front();
        }
    }

    void acknowledge() {
        if (reader_.owes()) {
            writer_.acknowledge(reader_.taken());
            reader_.reported(reader_.taken());
            require(!reader_.owes());
        }
        require(sent_.size() < kLinesPerRing || !writer_.has_room());
    }

  private:
    struct Word {
        std::size_t offset = 0;
        std::uint64_t value = 0;
    };
    std::array<RingLine, kLinesPerRing> ring_{};
    LineWriter writer_;
    LineReader reader_{ring_};
    std::vector<Word> under_way_;
    std::deque<RingLine> sent_; ///< Lines that were sent and not taken yet.
    std::deque<std::size_t> places_;
};

void check_lines(Steps steps) {
    Lines lines;
    while (!steps.ended()) {
        const std::uint8_t step = steps.next();
        switch (step % 4) {
        case 0: lines.send(steps); break;
        case 1: lines.deliver(step / 4U); break;
        case 2: lines.take(); break;
        default: lines.acknowledge(); break;
        }
    }
}

/// What is fuzzed here does not look at a link's relation to its peer.
struct Credits {
    GroupState group;
    RankLink link{group, 1, 1, *reinterpret_cast<Peer*>(&group)};
};

/// The counts begin where they soon wrap around. Those in the model do not wrap.
void check_credits(Steps steps) {
    constexpr std::uint32_t kBegin = 0xffffff00U;
    constexpr std::uint32_t kWindow = 64 << 10;
    Credits at;
    at.link.sent = at.link.acknowledged = kBegin;
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    while (!steps.ended()) {
        const std::uint8_t step = steps.next();
        const std::uint32_t cost = credit_cost(std::uint64_t{steps.next()} * 64);
        if (step % 2 == 0) {
            require(at.link.has_credit(cost, kWindow) == (sent - acknowledged + cost <= kWindow));
            if (at.link.has_credit(cost, kWindow)) {
                at.link.sent += cost;
                sent += cost;
            }
        } else {
            // The number lies between some 8,000 before the last one acknowledged and as many
            // beyond the last one sent.
            const std::uint64_t from = acknowledged < 8192 ? 0 : acknowledged - 8192;
            const std::uint64_t released = from + step / 2U * ((sent + 8192 - from) / 128);
            at.link.acknowledge(kBegin + static_cast<std::uint32_t>(released));
            acknowledged = released <= sent ? std::max(acknowledged, released) : acknowledged;
        }
        require(at.link.acknowledged == kBegin + static_cast<std::uint32_t>(acknowledged));
    }
}

/// The content of a word of units, in separate fields.
struct Units {
    std::optional<shm::UnitWord::Name> name;
    std::uint64_t taken = 0;
    std::uint64_t done = 0;
    bool closed = false;
};

void check_units(Steps steps) {
    std::uint64_t memory = 0; // A zero word belongs to no collective.
    auto& word = reinterpret_cast<shm::UnitWord&>(memory);
    Units model;
    while (!steps.ended()) {
        const std::uint8_t step = steps.next();
        const std::uint32_t sequence = steps.next() * 0x1000fU;
        const auto name = shm::UnitWord::Name::of(sequence);
        const bool known = model.name == name;
        const std::uint64_t units = step % 3 == 0 ? shm::UnitWord::kUnitsMax : step / 8U;
        if (step % 8 == 0) {
            word.open(name);
            model = {name, 0, 0, false};
        } else if (step % 8 < 5) {
            const bool there = known && !model.closed && model.taken < units;
            const std::optional<std::uint32_t> unit = word.take(name, units);
            require(unit.has_value() == there && (!there || *unit == model.taken));
            model.taken += there ? 1 : 0;
        } else if (step % 8 < 7) {
            if (model.done < model.taken) {
                require(word.unit_done() == ++model.done);
            }
        } else {
            word.close(name);
            model.closed = model.closed || known;
        }
        const auto counts = word.look(name);
        require(counts.has_value() == (model.name == name));
        require(!counts || (counts->taken == model.taken && counts->done == model.done &&
                            counts->closed == model.closed));
    }
}

} // namespace
} // namespace ucg::transport::ucx

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ucg::transport::ucx;
    if (size > 0) {
        const Steps steps(std::span(data, size).subspan(1));
        switch (data[0]) {
        case 'l': check_lines(steps); break;
        case 'c': check_credits(steps); break;
        case 'u': check_units(steps); break;
        default: break;
        }
    }
    return 0;
}
