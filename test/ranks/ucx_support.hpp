// What the tests of the UCX transport share: a job of forked ranks, each with a worker and a
// transport, patterns for the data, and bounded waiting.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/support/fork_ranks.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::test {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using transport::Direction;
using transport::Message;
using transport::MessageState;
using transport::ucx::UcxOptions;
using transport::ucx::UcxTransport;
using transport::ucx::UcxWorker;

/// One way to use UCX on this machine.
struct Fabric {
    const char* name;
    const char* tls;
    bool short_lane;
    bool lane_prefers_endpoints = false;
};
inline constexpr Fabric kFabrics[] = {
    {"tcp", "tcp", false},
    {"tcp, short lane", "tcp", true},
    {"tcp, short lane between endpoints", "tcp", true, true},
    {"posix", "posix,cma", false},
    {"posix, short lane", "posix,cma", true},
    {"sysv, short lane", "sysv", true},
};

inline UcxOptions options_for(const Fabric& fabric) {
    UcxOptions options;
    options.config = {{"TLS", fabric.tls}, {"NET_DEVICES", "lo"}, {"KEEPALIVE_INTERVAL", "1s"}};
    options.short_lane = fabric.short_lane;
    options.lane_prefers_endpoints = fabric.lane_prefers_endpoints;
    options.lane_overhead_us_max = 1e9; // With this, TCP is treated like a better network.
    return options;
}

/// A rank's worker and the addresses of all ranks. `complaint` is not empty when the worker could
/// not be made.
struct RankWorker {
    RankWorker(const ForkedRank& rank, const UcxOptions& options) {
        Result<std::unique_ptr<UcxWorker>> made = UcxWorker::create(options);
        if (made.ok()) {
            worker = std::move(*made);
        } else {
            complaint = std::string(made.status().message());
        }
        addresses = rank.exchange(worker ? worker->address() : std::string_view("none"));
    }

    /// Odd ranks number groups differently: what is 3 to one rank is 4 to its neighbours, and the
    /// other way round. REQUIRES: worker.
    std::unique_ptr<UcxTransport> group(std::uint32_t id, Rank self) const {
        std::vector<std::uint32_t> ids;
        for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
            ids.push_back(rank % 2 == 0 ? id : id ^ 7U);
        }
        Result<std::unique_ptr<UcxTransport>> made =
            UcxTransport::create(*worker, ids, self, addresses);
        return made.ok() ? std::move(*made) : nullptr;
    }

    std::unique_ptr<UcxWorker> worker;
    std::vector<std::string> addresses;
    std::string complaint;
};

/// The byte at `index` of the message that a seed names.
inline std::byte pattern(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::byte>((seed * 131 + index * 7 + (index >> 8)) & 0xff);
}

inline std::vector<std::byte> filled(std::uint64_t seed, std::uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        data[i] = pattern(seed, i);
    }
    return data;
}

inline Message message(Direction direction, Rank peer, std::span<std::byte> data,
                       std::uint32_t sequence, std::uint16_t step = 0, std::uint8_t channel = 0) {
    Message out;
    out.data = data.data();
    out.bytes = data.size();
    out.peer = peer;
    out.sequence = sequence;
    out.step = step;
    out.channel = channel;
    out.direction = direction;
    return out;
}

inline bool in_flight(std::span<const Message> messages) {
    for (const Message& each : messages) {
        if (each.state == MessageState::posted) {
            return true;
        }
    }
    return false;
}

/// Progresses until no message is in flight; false after `limit`.
inline bool complete(UcxTransport& transport, std::span<const Message> messages,
                     std::chrono::milliseconds limit = 20s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (in_flight(messages)) {
        if (transport.progress() == 0) {
            sched_yield();
        }
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
    }
    return true;
}

/// Empty if all messages are done.
inline std::string check_done(std::span<const Message> messages, const Status& status) {
    for (const Message& each : messages) {
        if (each.state != MessageState::done) {
            return fmt::format(
                "a message of {} bytes, peer {}, sequence {}, step {} is in state {}: "
                "{}",
                each.bytes, each.peer, each.sequence, each.step, static_cast<int>(each.state),
                status.message());
        }
    }
    return {};
}

/// Everything that went wrong in the ranks, and everything that they printed; empty when nothing
/// went wrong.
inline std::string complaints(const std::vector<RankResult>& results) {
    std::string all;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const RankResult& result = results[i];
        if (!result.ok() || !result.output.empty()) {
            all += fmt::format("[rank {} exit {} signal {}{}] {}\n", i, result.exit_code,
                               result.signal, result.timed_out ? " timed out" : "", result.output);
        }
    }
    return all;
}

} // namespace ucg::test
