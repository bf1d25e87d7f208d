#include "perf/perftest/collectives/host_links.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <sched.h>

#include "perf/perftest/collectives/host_identity.hpp"
#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/statistics.hpp"
#include "perf/perftest/timer.hpp"

namespace ucg::perftest {

namespace {

using transport::Direction;
using transport::Message;
using transport::MessageState;

constexpr std::uint32_t kGroup = 1; ///< The worker has no other group.
constexpr unsigned kTrips = 65;
constexpr unsigned kTripsFirst = 8;      ///< Trips that connect, and do not count.
constexpr unsigned kPollsPerYield = 100; ///< Virtual hosts may share processors.
constexpr int kRateRounds = 9;
constexpr std::uint64_t kRoundBytes = 2 << 20; ///< Least bytes that a rank sends in a round.
constexpr std::uint64_t kMessageMin = 16 << 10;
constexpr std::uint64_t kMessageMax = 1 << 20;

} // namespace

std::vector<std::size_t> number_hosts(const std::vector<std::string>& identities) {
    std::vector<std::string> known;
    std::vector<std::size_t> hosts;
    for (const std::string& identity : identities) {
        const auto found = std::ranges::find(known, identity);
        hosts.push_back(static_cast<std::size_t>(found - known.begin()));
        if (found == known.end()) {
            known.push_back(identity);
        }
    }
    return hosts;
}

HostConnections::HostConnections(Runtime& runtime, std::vector<std::size_t> hosts)
    : runtime_(runtime), hosts_(std::move(hosts)), by_host_(hosts_.size()) {
    std::iota(by_host_.begin(), by_host_.end(), 0);
    std::ranges::stable_sort(by_host_, {}, [this](Rank rank) { return host_of(rank); });
    for (std::size_t host = 0; host <= *std::ranges::max_element(hosts_); ++host) {
        most_ = std::max(most_, static_cast<std::size_t>(std::ranges::count(hosts_, host)));
    }
}

HostConnections::~HostConnections() {
    transport_.reset();
    if (worker_ != nullptr) {
        worker_->begin_close();
        while (!worker_->close_progress()) {
        }
        static_cast<void>(runtime_.barrier([this] { worker_->progress(); }));
    }
}

Result<std::unique_ptr<HostConnections>> HostConnections::create(Runtime& runtime) {
    const Result<std::vector<std::string>> identities =
        runtime.exchange(std::to_string(host_identity()));
    if (!identities.ok()) {
        return identities.status();
    }
    std::vector<std::size_t> hosts = number_hosts(*identities);
    if (*std::ranges::max_element(hosts) == 0) {
        return std::unique_ptr<HostConnections>();
    }
    std::unique_ptr<HostConnections> links(new HostConnections(runtime, std::move(hosts)));
    if (Status status = links->open(); !status.ok()) {
        return status;
    }
    return links;
}

Status HostConnections::open() {
    Result<std::unique_ptr<transport::ucx::UcxWorker>> worker =
        transport::ucx::UcxWorker::create({});
    if (Status status = agree(runtime_, worker.status()); !status.ok()) {
        return status;
    }
    worker_ = std::move(*worker);
    const Result<std::vector<std::string>> addresses = runtime_.exchange(worker_->address());
    if (!addresses.ok()) {
        return addresses.status();
    }
    Result<std::unique_ptr<transport::ucx::UcxTransport>> made =
        transport::ucx::UcxTransport::create(*worker_,
                                             std::vector<std::uint32_t>(addresses->size(), kGroup),
                                             runtime_.rank(), *addresses);
    if (made.ok()) {
        transport_ = std::move(*made);
    }
    return agree(runtime_, made.status());
}

/// Posts the messages and waits for all of them.
Status HostConnections::stream(std::span<Message> messages) {
    transport_->post(messages);
    const auto is_posted = [](Message& message) {
        return transport::shared_state(message).load(std::memory_order_acquire) ==
               static_cast<std::uint8_t>(MessageState::posted);
    };
    for (unsigned polls = 1; std::ranges::any_of(messages, is_posted); ++polls) {
        transport_->progress();
        worker_->progress();
        if (polls % kPollsPerYield == 0) {
            ::sched_yield();
        }
    }
    return transport_->status();
}

Result<double> HostConnections::slowest(double seconds) {
    const Result<std::vector<std::string>> all =
        runtime_.exchange({reinterpret_cast<const char*>(&seconds), sizeof(seconds)},
                          [this] { worker_->progress(); });
    if (!all.ok()) {
        return all.status();
    }
    for (const std::string& text : *all) {
        double theirs = 0;
        std::memcpy(&theirs, text.data(), std::min(text.size(), sizeof(theirs)));
        seconds = std::max(seconds, theirs);
    }
    return seconds;
}

/// Exchanges a word with `peer`. Rank 0 sends first and measures the times.
Status HostConnections::answer(Rank peer, std::vector<double>& seconds) {
    std::uint64_t word = 0;
    Status status;
    for (unsigned trip = 0; trip < kTrips + kTripsFirst && status.ok(); ++trip) {
        Message message = {.data = reinterpret_cast<std::byte*>(&word),
                           .bytes = sizeof(word),
                           .peer = peer,
                           .sequence = sequence_ + trip};
        const Ticks start = read_ordered();
        for (const bool sends : {runtime_.rank() == 0, runtime_.rank() != 0}) {
            message.direction = sends ? Direction::send : Direction::recv;
            status = status.ok() ? stream({&message, 1}) : status;
        }
        if (trip >= kTripsFirst) {
            seconds.push_back(nanoseconds(read_ordered() - start) * 1e-9);
        }
    }
    return status;
}

Result<double> HostConnections::round_trip() {
    const auto other = std::ranges::find_if(hosts_, [&](std::size_t host) { return host != 0; });
    const auto peer = static_cast<Rank>(other - hosts_.begin());
    Status status = slowest(0).status(); // All ranks have arrived.
    std::vector<double> seconds;
    if (status.ok() && (runtime_.rank() == 0 || runtime_.rank() == peer)) {
        status = answer(runtime_.rank() == 0 ? peer : 0, seconds);
    }
    sequence_ += kTrips + kTripsFirst;
    if (status = agree(runtime_, status); !status.ok()) {
        return status;
    }
    return slowest(runtime_.rank() == 0 ? percentile(seconds, 50) : 0);
}

std::size_t HostConnections::least_senders() const {
    std::vector<std::size_t> senders(*std::ranges::max_element(hosts_) + 1);
    for (std::size_t place = 0; place < by_host_.size(); ++place) {
        const std::size_t host = host_of(by_host_[place]);
        senders[host] += host != host_of(by_host_[(place + most_) % by_host_.size()]) ? 1 : 0;
    }
    return *std::ranges::min_element(senders);
}

/// Each rank sends to the rank that is as many places further as the largest host has ranks. That
/// one is on another host unless a host has more than half of all ranks. In some rounds all hosts
/// send, in others every second one, since some links carry less each way when both directions are
/// in use.
Result<double> HostConnections::rate(std::uint64_t bytes) {
    const std::uint64_t length = std::clamp(bytes, kMessageMin, kMessageMax);
    const std::uint64_t count = (kRoundBytes + length - 1) / length;
    const auto place =
        static_cast<std::size_t>(std::ranges::find(by_host_, runtime_.rank()) - by_host_.begin());
    const std::size_t size = by_host_.size();
    const std::array peers = {by_host_[(place + most_) % size],
                              by_host_[(place + size - most_) % size]};
    std::vector<std::byte> data(2 * length);
    double least = 0;
    for (int round = 0; round < kRateRounds; ++round, ++sequence_) {
        const std::array senders = {runtime_.rank(), peers[1]};
        std::vector<Message> messages;
        for (std::size_t way = 0; way < 2; ++way) {
            const bool crosses = host_of(peers[way]) != host_of(runtime_.rank());
            const bool sends = round % 3 == 0 || host_of(senders[way]) % 2 == round % 3 - 1U;
            for (std::uint64_t i = 0; i < count && crosses && sends; ++i) {
                messages.push_back({.data = data.data() + way * length,
                                    .bytes = length,
                                    .peer = peers[way],
                                    .sequence = sequence_,
                                    .step = static_cast<std::uint16_t>(i),
                                    .direction = way == 0 ? Direction::send : Direction::recv});
            }
        }
        if (Status status = slowest(0).status(); !status.ok()) { // All have arrived.
            return status;
        }
        const Ticks start = read_ordered();
        const Status status = stream(messages);
        // A rank that is done progresses what others still wait for.
        const Result<double> took = slowest(nanoseconds(read_ordered() - start) * 1e-9);
        if (!took.ok()) {
            return took.status();
        }
        least = round == 0 ? *took : std::min(least, *took);
        if (Status all = agree(runtime_, status); !all.ok()) {
            return all;
        }
    }
    return static_cast<double>(count * length * least_senders()) / least;
}

} // namespace ucg::perftest
