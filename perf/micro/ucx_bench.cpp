// One-way latency of 8 bytes between two processes, half of a ping-pong, in nanoseconds:
//
//   uct         uct_ep_am_short and uct_worker_progress alone: what the hardware and UCT cost
//   puts        UcxTransport with its short lane, the shortest messages by put
//   messages    the same, all by active messages
//   ucp         UcxTransport over UCP only
//
// The variants alternate in one run, since two cores do not stay equally near. For each variant the
// minimum, the median and the median deviation of the rounds are printed.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "perf/micro/bench_options.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

using namespace ucg;
using namespace ucg::transport;
using namespace ucg::transport::ucx;

namespace {

constexpr std::size_t kBytes = 8;
constexpr double kAnyOverhead = 1e9; ///< So large that TCP has a short lane, too.

/// Ends the process: without what the system refused there is nothing to measure. The other process
/// finds its end of the line closed.
[[noreturn]] void give_up(const char* what, std::string_view why) {
    std::fprintf(stderr, "ucx_bench: %s: %.*s\n", what, static_cast<int>(why.size()), why.data());
    std::exit(1);
}

template <typename T>
T need(const char* what, Result<T> result) {
    if (!result.ok()) {
        give_up(what, result.status().message());
    }
    return std::move(*result);
}

/// The connection between the two processes, for addresses.
class Cord {
  public:
    Cord(int fd, Rank rank) : fd_(fd), rank_(rank) {}
    Rank rank() const { return rank_; }

    /// Gives `mine` to the other process and returns what that gives. Both are short enough for the
    /// socket's buffer.
    std::string swap(std::string_view mine) const {
        const std::uint64_t bytes = mine.size();
        std::uint64_t theirs = 0;
        std::string text;
        const bool sent =
            send(fd_, &bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes) &&
            send(fd_, mine.data(), bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
        const bool got = read(fd_, &theirs, sizeof(theirs)) == sizeof(theirs);
        text.resize(got ? theirs : 0);
        if (!sent || !got ||
            recv(fd_, text.data(), theirs, MSG_WAITALL) != static_cast<ssize_t>(theirs)) {
            std::fprintf(stderr, "ucx_bench: the other process is gone\n");
            std::_Exit(1);
        }
        return text;
    }

  private:
    int fd_;
    Rank rank_;
};

/// Spins, but yields the core once in a long while: other processes may need it to answer.
class Spin {
  public:
    void idle() {
        if (++turns_ % 4096 == 0) {
            sched_yield();
        }
    }

  private:
    unsigned turns_ = 0;
};

/// A way to play ping-pong.
class Player {
  public:
    virtual ~Player() = default;
    virtual void send() = 0;
    virtual void receive() = 0;
};

class UctPlayer final : public Player, private LaneSink {
  public:
    explicit UctPlayer(const Cord& line, const UcxOptions& options) {
        const Ucp ucp = need("no UCX", open_ucp(options));
        std::vector<InterfaceInfo> report;
        lane_ = ShortLane::create(ucp.inventory, options, *this, report);
        ProcessAddress own;
        own.process = static_cast<std::uint64_t>(line.rank()) + 1;
        own.place = this_place();
        own.lanes = lane_->addresses();
        peer_ = need("the other process's address", unpack(line.swap(pack(own))));
        const std::vector<ShortLane::Route> routes = lane_->routes(own.place, peer_);
        if (routes.empty()) {
            give_up("no short lane", "UCT reaches the other process by no interface of this fabric "
                                     "that has short messages: is the device there and up?");
        }
        if (!connect(line, routes.front())) {
            give_up("no short lane", "UCT made no endpoint to the other process");
        }
    }

    void send() override {
        while (ShortLane::send(endpoint_.get(), envelope_, &word_, kBytes) == UCS_ERR_NO_RESOURCE) {
            lane_->progress();
        }
    }

    void receive() override {
        for (Spin spin; arrived_ == 0; spin.idle()) {
            lane_->progress();
        }
        --arrived_;
    }

  private:
    bool connect(const Cord& line, const ShortLane::Route& route) {
        if (!lane_->joins_endpoints(route)) {
            endpoint_ = lane_->connect(route, peer_);
            return endpoint_ != nullptr;
        }
        std::string address;
        endpoint_ = lane_->begin(route, address);
        const std::string theirs = line.swap(address);
        const bool joined =
            endpoint_ != nullptr && lane_->join(endpoint_.get(), route, peer_, theirs);
        line.swap("joined"); // Both ends exist before anybody sends.
        return joined;
    }

    void lane_data(const Envelope& /*envelope*/, const void* data, std::size_t bytes) override {
        std::memcpy(&word_, data, std::min(bytes, sizeof(word_)));
        ++arrived_;
    }
    void lane_notice(const LaneNotice& /*notice*/) override {}
    void lane_error(uct_ep_h /*endpoint*/, ucs_status_t /*status*/) override {}

    std::unique_ptr<ShortLane> lane_;
    ProcessAddress peer_;
    UctEndpoint endpoint_;
    Envelope envelope_;
    std::uint64_t word_ = 0;
    unsigned arrived_ = 0;
};

class TransportPlayer final : public Player {
  public:
    TransportPlayer(const Cord& line, const UcxOptions& options) : peer_(1 - line.rank()) {
        worker_ = need("no UCX worker", UcxWorker::create(options));
        std::vector<PeerAddress> peers(2);
        peers[static_cast<std::size_t>(peer_)] = line.swap(worker_->address());
        transport_ = need("no UCX transport",
                          UcxTransport::create(*worker_, std::array{1U, 1U}, line.rank(), peers));
    }

    void send() override { run(Direction::send, sent_++); }
    void receive() override { run(Direction::recv, received_++); }
    UcxWorker& worker() { return *worker_; }

  private:
    void run(Direction direction, std::uint32_t sequence) {
        Message message;
        message.data = data_;
        message.bytes = kBytes;
        message.peer = peer_;
        message.sequence = sequence;
        message.direction = direction;
        transport_->post({&message, 1});
        for (Spin spin; message.state == MessageState::posted; spin.idle()) {
            transport_->progress();
        }
        if (message.state != MessageState::done) {
            give_up("a message failed", transport_->status().message());
        }
    }

    Rank peer_;
    std::unique_ptr<UcxWorker> worker_;
    std::unique_ptr<UcxTransport> transport_;
    std::byte data_[kBytes] = {};
    std::uint32_t sent_ = 0;
    std::uint32_t received_ = 0;
};

/// Returns nanoseconds one way, the mean over `count` ping-pongs.
double play(Player& player, Rank rank, int count) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
        if (rank == 0) {
            player.send();
            player.receive();
        } else {
            player.receive();
            player.send();
        }
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    return time.count() / count / 2;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void report(const char* fabric, const char* name, const std::vector<double>& rounds) {
    const double centre = median(rounds);
    std::vector<double> deviations;
    deviations.reserve(rounds.size());
    for (const double value : rounds) {
        deviations.push_back(std::abs(value - centre));
    }
    std::printf("%-8s %-12s %10.0f %10.0f %8.0f %6zu\n", fabric, name,
                *std::min_element(rounds.begin(), rounds.end()), centre, median(deviations),
                rounds.size());
}

void measure(const Cord& line, const char* fabric, unsigned rounds, int count) {
    UcxOptions options;
    options.config = {{"TLS", fabric}, {"NET_DEVICES", "lo"}};
    options.lane_overhead_us_max = kAnyOverhead;
    UcxOptions ucp_only = options;
    ucp_only.short_lane = false;
    UctPlayer uct(line, options);
    TransportPlayer puts(line, options);
    options.lane_puts = false;
    TransportPlayer lane(line, options);
    TransportPlayer ucp(line, ucp_only);
    const std::pair<const char*, Player*> players[] = {
        {"uct", &uct}, {"puts", &puts}, {"messages", &lane}, {"ucp", &ucp}};
    std::vector<double> times[std::size(players)];
    for (unsigned round = 0; round <= rounds; ++round) { // The first connects; it does not count.
        for (std::size_t i = 0; i < std::size(players); ++i) {
            const double time = play(*players[i].second, line.rank(), count);
            if (round > 0) {
                times[i].push_back(time);
            }
        }
    }
    for (std::size_t i = 0; line.rank() == 0 && i < std::size(players); ++i) {
        report(fabric, players[i].first, times[i]);
    }
    line.swap("done");
}

constexpr std::string_view kUsage =
    "usage: ucx_bench [--smoke] [--rounds N]\n"
    "One-way latency of 8 bytes between two processes by UCX.\n"
    "  --smoke      few messages, to see that it runs\n"
    "  --rounds N   rounds of which the median is taken (40; with --smoke 3)\n";

} // namespace

int main(int argc, char** argv) {
    bool smoke = false;
    unsigned rounds = 0;
    if (const auto status = perf::read_options(argc, argv, kUsage, {{"--smoke", smoke}},
                                               {{"--rounds", rounds, 1 << 20}})) {
        return *status;
    }
    rounds = rounds != 0 ? rounds : smoke ? 3 : 40;
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        give_up("no line between the processes", std::strerror(errno));
    }
    std::printf("%-8s %-12s %10s %10s %8s %6s   (ns one way, 8 bytes)\n", "fabric", "path", "min",
                "median", "mad", "rounds");
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) {
        give_up("no second process", std::strerror(errno));
    }
    const Rank rank = child == 0 ? 1 : 0;
    const Cord line(pair[rank], rank);
    close(pair[1 - rank]);
    for (const char* fabric : {"tcp", "posix"}) {
        measure(line, fabric, rounds, smoke ? 50 : 500);
    }
    if (child == 0) {
        return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
