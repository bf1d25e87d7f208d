// N ranks in one process and one thread, for tests and benchmarks: no machine, no memory but the
// program's own. Delivery order is seeded, so a seed reproduces a run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// How messages travel.
enum class Delivery : std::uint8_t {
    immediate,   ///< A message is delivered as soon as both ends are posted, eagerly buffered.
    reordered,   ///< Random order and delay, eagerly buffered.
    synchronous, ///< Random order and delay; a send completes only when it was received.
};

class LoopbackTransport;

/// What connects the ranks. To be used by one thread.
class LoopbackFabric {
  public:
    /// `flag_slot_depth`: how many numbers a rank may be ahead of its peers on its flag slot: few,
    /// so that tests have ranks that wait for room.
    LoopbackFabric(Rank rank_count, Delivery delivery, std::uint64_t seed = 1,
                   std::size_t flag_slot_depth = 4);
    ~LoopbackFabric();
    LoopbackFabric(const LoopbackFabric&) = delete;
    LoopbackFabric& operator=(const LoopbackFabric&) = delete;

    Rank rank_count() const { return static_cast<Rank>(ports_.size()); }
    LoopbackTransport& transport(Rank rank) { return *ports_[static_cast<std::size_t>(rank)]; }

    /// Returns the routes of `rank`, which all lead through its loopback transport.
    std::vector<Transport*> routes(Rank rank) const;

    /// Do ranks reach one another's buffers in place, or only what was copied to staging buffers?
    /// Asked each time for each buffer that `owner` exposes. They reach them in place until
    /// map_buffers() is called.
    using Reach = std::function<bool(Rank owner)>;
    void map_buffers(Reach reach) { reach_ = std::move(reach); }
    void map_buffers(bool buffers_mapped) {
        reach_ = [buffers_mapped](Rank) { return buffers_mapped; };
    }

    /// Is no message posted or buffered that has not been delivered?
    bool quiet() const;

  private:
    friend class LoopbackTransport;
    std::vector<std::unique_ptr<LoopbackTransport>> ports_;
    Delivery delivery_;
    Reach reach_ = [](Rank) { return true; };
    std::mt19937_64 random_;
};

class LoopbackTransport final : public Transport, public PeerMemory, public FlagSlots {
  public:
    LoopbackTransport(LoopbackFabric& fabric, Rank rank, Rank rank_count,
                      std::size_t flag_slot_depth);

    std::string_view name() const override { return "loopback"; }
    void post(std::span<Message> messages) override;
    void take_part(Message& message) override;
    unsigned progress() override;
    Status status() const override { return {}; }

    PeerMemory* peer_memory() override { return this; }
    std::span<std::byte> staging() override;
    bool is_mapped_by_peers(const std::byte* data, std::uint64_t bytes) const override;
    bool expose(std::uint32_t sequence, const SharedBuffers& buffers,
                std::uint64_t staging_bytes) override;
    SharedBuffer peer_buffer(Rank owner, graph::BufferKind buffer,
                             std::uint32_t sequence) const override;

    FlagSlots* flag_slots() override { return this; }
    std::uint64_t bytes_max() const override { return kFlagSlotBytes; }
    bool share(const FlagSlotSequence& sequence, const std::byte* data,
               std::uint64_t bytes) override;
    std::size_t poll(const FlagSlotSequence& sequence, std::span<const FlagSlotRead> reads,
                     const std::byte** places) override;
    std::size_t exchange(const FlagSlotExchange& exchange) override {
        return exchange_by_parts(exchange);
    }
    void finish(std::uint64_t sequence) override;
    bool broken() const override { return false; }

    static constexpr std::uint64_t kFlagSlotBytes = 8 << 10; ///< The longest share.

    /// Staging memory of each rank; allocated only where it is used.
    static constexpr std::uint64_t kStagingBytes = 1 << 20;

  private:
    friend class LoopbackFabric;

    const std::byte* look_at(const FlagSlotSequence& sequence, const FlagSlotRead& read);

    // A message on its way to this rank. `origin` is null once the sender was told "done".
    struct Arrival {
        Rank from = kNoRank;
        std::uint32_t sequence = 0;
        std::uint16_t step = 0;
        std::uint8_t channel = 0;
        Message* origin = nullptr;
        std::vector<std::byte> bytes;
    };

    void post_send(Message& message);
    void post_recv(Message& message);
    static bool matches(const Arrival& arrival, const Message& recv);
    void deliver(Arrival& arrival, Message& recv);
    void give_out(Message& recv);
    unsigned give_out_some();
    bool deliver_one(const Message& recv);

    LoopbackFabric& fabric_;
    Rank rank_;
    std::vector<Arrival> arrivals_;
    struct Parts {
        Message* recv = nullptr;
        std::vector<std::byte> bytes;
    };
    std::vector<Parts> parts_;     // Messages that are given out part by part.
    std::vector<Message*> posted_; // Receives, in the order of posting.
    std::vector<Message*> visits_; // The posted receives in random order.
    struct FreeStaging {
        void operator()(std::byte* memory) const;
    };
    struct Exposed {
        std::uint32_t sequence = 0;
        SharedBuffers buffers;
    };
    std::array<Exposed, 64> exposed_; // By sequence, as many as may be outstanding.
    std::unique_ptr<std::byte, FreeStaging> staging_;

    struct Slot {
        std::uint64_t after = 0; ///< One more than its sequence number; 0: it is empty.
        std::uint32_t collective = 0;
        std::uint16_t plan = 0;
        std::vector<std::byte> bytes;
        std::vector<bool> arrived; ///< Index: reader; has it seen the share? Then it stays seen.
    };
    std::vector<Slot> slots_; ///< The own flag slot.
    std::uint64_t done_ = 0;  ///< This rank looks at no share below this number.
};

} // namespace ucg::transport
