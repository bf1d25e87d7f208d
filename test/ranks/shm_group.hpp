// All ranks of a shared-memory group in one process, each with its own heap, and their messages.
#pragma once

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "shm/shm.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::test {

/// The transports must be destroyed before the heaps.
struct ShmGroup {
    std::vector<std::unique_ptr<shm::Heap>> heaps;
    std::vector<std::unique_ptr<transport::ShmTransport>> transports;

    ShmGroup(const std::vector<Rank>& ranks, const transport::ShmOptions& options) {
        make(ranks, std::vector<transport::ShmOptions>(ranks.size(), options));
    }

    /// Makes a group in which each rank has its own options.
    explicit ShmGroup(const std::vector<transport::ShmOptions>& options) {
        std::vector<Rank> ranks(options.size());
        std::iota(ranks.begin(), ranks.end(), 0);
        make(ranks, options);
    }

    template <typename Body>
    void run(Body body) {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < transports.size(); ++i) {
            threads.emplace_back(body, i);
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

  private:
    void make(const std::vector<Rank>& ranks, const std::vector<transport::ShmOptions>& options) {
        std::vector<transport::ShmAddress> addresses;
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            auto heap = shm::Heap::create({std::uint64_t{1} << 26});
            REQUIRE(heap.ok());
            heaps.push_back(std::move(*heap));
            auto made = transport::ShmTransport::create(*heaps.back(), ranks, static_cast<Rank>(i),
                                                        options[i]);
            REQUIRE(made.ok());
            transports.push_back(std::move(*made));
            addresses.push_back(transports.back()->address());
        }
        std::vector<Status> outcome(ranks.size());
        run([&](std::size_t i) { outcome[i] = transports[i]->connect(addresses); });
        for (const Status& status : outcome) {
            INFO(status.message());
            REQUIRE(status.ok());
        }
    }
};

inline std::vector<Rank> first_ranks(Rank count) {
    std::vector<Rank> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

inline transport::Message message(transport::Direction direction, Rank peer,
                                  std::vector<std::byte>& data, std::uint32_t sequence,
                                  std::uint16_t step = 0) {
    transport::Message m;
    m.data = data.data();
    m.bytes = data.size();
    m.peer = peer;
    m.sequence = sequence;
    m.step = step;
    m.direction = direction;
    return m;
}
inline constexpr auto kSend = transport::Direction::send;
inline constexpr auto kRecv = transport::Direction::recv;

inline std::vector<std::byte> filled(std::uint64_t bytes, int value) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

/// Lets all ranks make progress in turn, in this thread, often enough for everything that these
/// tests post.
inline void settle(ShmGroup& group) {
    for (int i = 0; i < 400; ++i) {
        for (const auto& transport : group.transports) {
            transport->progress();
        }
    }
}

} // namespace ucg::test
