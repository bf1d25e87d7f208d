// A seeded crowd of messages between all ranks of a group. Every rank derives the same list from
// the seed, sends its part in one shuffled order and receives its part in another, and checks every
// byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "shm/wait.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::test {

struct TrafficPattern {
    std::uint64_t seed = 1;
    Rank rank_count = 2;
    std::uint32_t sequences = 8;         ///< Collectives outstanding at once.
    std::uint32_t messages_per_pair = 4; ///< The maximum for each sequence.
    std::vector<std::uint64_t> sizes = {0, 1, 8, 40, 41, 64, 4096};
    bool receive_in_order = false;      ///< Otherwise some messages arrive early.
    std::uint32_t slow_receiver_us = 0; ///< Sleep between a receiver's posts: back pressure.
};

inline std::byte pattern_byte(const transport::Message& m, Rank from, Rank to, std::uint64_t i) {
    const std::uint64_t name = m.sequence * 131U + m.step * 31U + m.channel * 17U +
                               static_cast<std::uint64_t>(from) * 7U +
                               static_cast<std::uint64_t>(to) * 3U;
    return static_cast<std::byte>((name + i + (i >> 8)) & 0xff);
}

/// One rank's messages of the pattern, and their memory.
class PatternRank {
  public:
    PatternRank(const TrafficPattern& pattern, Rank self) : pattern_(pattern), self_(self) {
        std::mt19937_64 random(pattern.seed);
        for (std::uint32_t sequence = 0; sequence < pattern.sequences; ++sequence) {
            for (Rank from = 0; from < pattern.rank_count; ++from) {
                for (Rank to = 0; to < pattern.rank_count; ++to) {
                    if (from != to) {
                        add_pair(random, sequence, from, to);
                    }
                }
            }
        }
        // The order within one (peer, sequence, channel) is fixed by the contract; a stable sort by
        // a random key of that triple keeps it.
        shuffle(sends_, pattern.seed * 2 + 1, false);
        shuffle(recvs_, pattern.seed * 3 + 7, pattern.receive_in_order);
        allocate(sends_);
        allocate(recvs_);
        for (std::size_t i = 0; i < sends_.size(); ++i) {
            for (std::uint64_t b = 0; b < sends_[i].bytes; ++b) {
                sends_[i].data[b] = pattern_byte(sends_[i], self_, sends_[i].peer, b);
            }
        }
    }

    /// Runs all of it; empty when all went well.
    std::string run(transport::Transport& transport, shm::Waiter waiter) {
        std::mt19937_64 random(pattern_.seed + static_cast<std::uint64_t>(self_) * 1000003U);
        std::size_t sent = 0;
        std::size_t received = 0;
        while (sent < sends_.size() || received < recvs_.size()) {
            sent = post_some(transport, sends_, sent, random() % 5);
            received = post_some(transport, recvs_, received, random() % 5);
            transport.progress();
            take_parts(transport);
            if (pattern_.slow_receiver_us > 0) {
                ::usleep(pattern_.slow_receiver_us);
            }
        }
        while (!finished(sends_) || !finished(recvs_)) {
            if (transport.progress() + take_parts(transport) > 0) {
                waiter.reset();
            } else {
                waiter.idle();
            }
        }
        if (!transport.status().ok()) {
            return std::string(transport.status().message());
        }
        return check();
    }

    std::size_t message_count() const { return sends_.size() + recvs_.size(); }

  private:
    void add_pair(std::mt19937_64& random, std::uint32_t sequence, Rank from, Rank to) {
        const std::uint64_t count = random() % (pattern_.messages_per_pair + 1);
        std::uint16_t steps[2] = {0, 0};
        for (std::uint64_t i = 0; i < count; ++i) {
            transport::Message m;
            m.sequence = sequence;
            m.channel = random() % 4 == 0 ? transport::kSignalChannel : transport::kDataChannel;
            m.step = steps[m.channel]++;
            const std::uint64_t size = pattern_.sizes[random() % pattern_.sizes.size()];
            m.bytes = m.channel == transport::kSignalChannel ? 0 : size;
            if (from == self_) {
                m.peer = to;
                m.direction = transport::Direction::send;
                sends_.push_back(m);
            }
            if (to == self_) {
                m.read_on_arrival = (sequence + m.step) % 2 == 0;
                m.peer = from;
                m.direction = transport::Direction::recv;
                recvs_.push_back(m);
            }
        }
    }

    static void shuffle(std::vector<transport::Message>& messages, std::uint64_t seed, bool keep) {
        const auto key = [seed](const transport::Message& m) {
            std::uint64_t x = seed + m.sequence * 0x9e3779b97f4a7c15ULL + m.channel * 0x51ed27U +
                              static_cast<std::uint64_t>(m.peer) * 0xd6e8feb86659fd93ULL;
            x ^= x >> 32;
            return x * 0xd6e8feb86659fd93ULL;
        };
        if (!keep) {
            std::stable_sort(messages.begin(), messages.end(),
                             [&](const auto& a, const auto& b) { return key(a) < key(b); });
        }
    }

    void allocate(std::vector<transport::Message>& messages) {
        for (transport::Message& m : messages) {
            memory_.emplace_back(m.bytes, std::byte{0xee});
            m.data = m.bytes == 0 ? nullptr : memory_.back().data();
        }
    }

    static std::size_t post_some(transport::Transport& transport,
                                 std::vector<transport::Message>& messages, std::size_t from,
                                 std::uint64_t count) {
        const std::size_t n = std::min<std::size_t>(count, messages.size() - from);
        transport.post({messages.data() + from, n});
        return from + n;
    }

    /// Reads what may be read where it arrives.
    unsigned take_parts(transport::Transport& transport) {
        unsigned taken = 0;
        for (transport::Message& m : recvs_) {
            for (; m.state == transport::MessageState::part; ++taken) {
                std::copy_n(m.part, m.part_bytes, m.data + m.taken);
                m.taken += m.part_bytes;
                transport.take_part(m);
            }
        }
        return taken;
    }

    static bool finished(const std::vector<transport::Message>& messages) {
        return std::all_of(messages.begin(), messages.end(), [](const transport::Message& m) {
            return m.state == transport::MessageState::done ||
                   m.state == transport::MessageState::failed;
        });
    }

    std::string check() const {
        for (const transport::Message& m : recvs_) {
            for (std::uint64_t b = 0; b < m.bytes; ++b) {
                if (m.data[b] != pattern_byte(m, m.peer, self_, b)) {
                    return "wrong byte " + std::to_string(b) + " of " + std::to_string(m.bytes) +
                           " from " + std::to_string(m.peer) + " sequence " +
                           std::to_string(m.sequence) + " step " + std::to_string(m.step);
                }
            }
        }
        return "";
    }

    TrafficPattern pattern_;
    Rank self_;
    std::vector<transport::Message> sends_;
    std::vector<transport::Message> recvs_;
    std::vector<std::vector<std::byte>> memory_;
};

} // namespace ucg::test
