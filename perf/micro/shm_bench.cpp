// One-way times between two forked processes, each bound to a CPU of its own, and what the machine
// can do at best, all measured in the same alternating rounds:
//
//   line        bare ping-pong of one cache line: the floor of any message
//   message     ping-pong of messages of 0 B .. 1 MiB through transport/shm
//   exchange    both send such a message and wait for the other's, which take the same time
//   flag_slot   the same by what each shares on its flag slot
//   memcpy      one process copying as many bytes between two buffers of its own
//
// Prints the median and the least of the rounds, in nanoseconds. With fewer than two usable CPUs
// both processes share one and the numbers are those of sched_yield.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "perf/micro/bench_options.hpp"
#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using transport::Message;
using transport::MessageState;
using transport::ShmAddress;
using transport::ShmOptions;
using transport::ShmTransport;

constexpr std::array<std::uint64_t, 9> kSizes = {0,        8,        64,        1 << 10, 4 << 10,
                                                 16 << 10, 64 << 10, 256 << 10, 1 << 20};

/// The memory that both processes share from the start: the bare line, and where they exchange
/// addresses.
struct alignas(kCacheLine) CommonMemory {
    alignas(kCacheLine) std::atomic<std::uint64_t> line;
    alignas(kCacheLine) std::array<std::atomic<std::uint32_t>, 2> written;
    std::array<std::array<ShmAddress, 8>, 2> addresses;
};

struct Variant {
    std::string name;
    ShmOptions options;
};

struct Settings {
    unsigned rounds = 0;            ///< 0: the option was not given.
    std::uint64_t work_ns = 400000; ///< About as long for each size in each round.
    bool variants = false;
};

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

std::vector<Variant> variants(const Settings& settings) {
    std::vector<Variant> all = {{"default", {}}};
    if (settings.variants) {
        for (const std::uint32_t slot : {4U << 10, 8U << 10, 16U << 10, 32U << 10}) {
            ShmOptions options;
            options.slot_bytes_max = slot;
            options.single_copy_bytes_min = ~std::uint64_t{0};
            all.push_back({"slots " + std::to_string(slot >> 10) + "K", options});
        }
        ShmOptions options;
        options.single_copy_bytes_min = 4 << 10;
        all.push_back({"single copy", options});
    }
    return all;
}

/// One of the two processes.
class Side {
  public:
    Side(CommonMemory& common, int index, const std::vector<Variant>& all, unsigned cpus)
        : common_(common), index_(index), waiter_(2, cpus), buffer_(kSizes.back(), std::byte{1}),
          other_(kSizes.back(), std::byte{2}) {
        auto heap = shm::Heap::create({});
        require(heap.status());
        heap_ = std::move(*heap);
        const std::vector<Rank> ranks = {0, 1};
        auto& mine = common_.addresses[static_cast<std::size_t>(index)];
        for (const Variant& variant : all) {
            auto made = ShmTransport::create(*heap_, ranks, index, variant.options);
            require(made.status());
            mine[transports_.size()] = (*made)->address();
            transports_.push_back(std::move(*made));
        }
        common_.written[static_cast<std::size_t>(index)].store(1, std::memory_order_release);
        while (common_.written[static_cast<std::size_t>(1 - index)].load() == 0) {
            ::sched_yield();
        }
        for (std::size_t i = 0; i < transports_.size(); ++i) {
            const std::array<ShmAddress, 2> pair = {common_.addresses[0][i],
                                                    common_.addresses[1][i]};
            require(transports_[i]->connect(pair));
        }
    }

    /// Returns nanoseconds one way. Both sides call it with the same arguments.
    double message(std::size_t variant, std::uint64_t bytes, std::uint64_t iterations) {
        transport::Transport& transport = *transports_[variant];
        const std::uint64_t start = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            if (index_ == 0) {
                move(transport, transport::Direction::send, bytes);
                move(transport, transport::Direction::recv, bytes);
            } else {
                move(transport, transport::Direction::recv, bytes);
                move(transport, transport::Direction::send, bytes);
            }
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(2 * iterations);
    }

    double exchange(std::uint64_t bytes, std::uint64_t iterations) {
        ShmTransport& transport = *transports_.front();
        std::array<Message, 2> both;
        name(both[0], transport::Direction::send, buffer_, bytes);
        name(both[1], transport::Direction::recv, other_, bytes);
        const std::uint64_t start = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            transport.post(both);
            await([&] {
                return both[0].state == MessageState::done && both[1].state == MessageState::done;
            });
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(iterations);
    }

    double flag_slot(std::uint64_t bytes, std::uint64_t iterations) {
        transport::FlagSlots& own = *transports_.front()->flag_slots();
        const std::uint64_t start = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i, ++sequence_) {
            const transport::FlagSlotSequence sequence = {sequence_,
                                                          static_cast<std::uint32_t>(sequence_), 1};
            await([&] { return own.share(sequence, buffer_.data(), bytes); });
            const std::byte* seen = nullptr;
            await([&] { return (seen = own.shared(sequence, 1 - index_, 0)) != nullptr; });
            std::memcpy(other_.data(), seen, bytes);
            own.finish(sequence_ + 1);
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(iterations);
    }
    std::uint64_t flag_slot_bytes() const { return transports_.front()->bytes_max(); }

    double line(std::uint64_t iterations) {
        const std::uint64_t start = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            if (index_ == 0) {
                line_base_ += 1;
                common_.line.store(line_base_, std::memory_order_release);
                line_base_ += 1;
                await_line();
            } else {
                line_base_ += 1;
                await_line();
                line_base_ += 1;
                common_.line.store(line_base_, std::memory_order_release);
            }
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(2 * iterations);
    }

    double copy(std::uint64_t bytes, std::uint64_t iterations) {
        const std::uint64_t start = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) {
            std::memcpy(other_.data(), buffer_.data(), bytes);
            asm volatile("" ::: "memory"); // The copies must not be merged.
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(iterations);
    }

  private:
    static void require(const Status& status) {
        if (!status.ok()) {
            std::fprintf(stderr, "shm_bench: %s\n", std::string(status.message()).c_str());
            std::_Exit(1);
        }
    }

    /// Sets a message that lies in `data`. It is not copied there first, since a message that was
    /// copied whole just before its post would delay the post.
    void name(Message& message, transport::Direction direction, std::vector<std::byte>& data,
              std::uint64_t bytes) const {
        message.data = data.data();
        message.bytes = bytes;
        message.peer = 1 - index_;
        message.direction = direction;
    }

    /// Progresses the first transport until the condition holds.
    template <typename Condition>
    void await(Condition condition) {
        waiter_.reset();
        while (!condition()) {
            if (transports_.front()->progress() == 0) {
                waiter_.idle();
            }
        }
    }

    void await_line() {
        waiter_.reset();
        while (common_.line.load(std::memory_order_acquire) != line_base_) {
            waiter_.idle();
        }
    }

    void move(transport::Transport& transport, transport::Direction direction,
              std::uint64_t bytes) {
        name(message_, direction, buffer_, bytes);
        transport.post({&message_, 1});
        waiter_.reset();
        while (message_.state == MessageState::posted) {
            if (transport.progress() == 0) {
                waiter_.idle();
            }
        }
    }

    CommonMemory& common_;
    int index_;
    shm::Waiter waiter_;
    std::vector<std::byte> buffer_;
    std::vector<std::byte> other_;
    std::unique_ptr<shm::Heap> heap_;
    std::vector<std::unique_ptr<ShmTransport>> transports_;
    Message message_;
    std::uint64_t line_base_ = 0;
    std::uint64_t sequence_ = 0;
};

void bind_to(std::uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ::sched_setaffinity(0, sizeof(set), &set);
}

struct Row {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<double> times_ns;

    double median() {
        std::sort(times_ns.begin(), times_ns.end());
        return times_ns[times_ns.size() / 2];
    }
};

/// Returns the number of iterations that roughly fit into the time; the same on both sides.
std::uint64_t iterations_for(const Settings& settings, std::uint64_t bytes) {
    return std::max<std::uint64_t>(2, settings.work_ns / (100 + bytes / 8));
}

std::vector<Row> measure(Side& side, const Settings& settings, const std::vector<Variant>& all) {
    std::vector<Row> rows;
    for (unsigned round = 0; round < settings.rounds; ++round) {
        std::size_t next = 0;
        const auto record = [&](const std::string& name, std::uint64_t bytes, double time_ns) {
            if (next == rows.size()) {
                rows.push_back({name, bytes, {}});
            }
            rows[next++].times_ns.push_back(time_ns);
        };
        record("line", 8, side.line(iterations_for(settings, 8)));
        for (const std::uint64_t bytes : kSizes) {
            const std::uint64_t iterations = iterations_for(settings, bytes);
            record("memcpy", bytes, side.copy(bytes, iterations));
            for (std::size_t v = 0; v < all.size(); ++v) {
                record("message " + all[v].name, bytes, side.message(v, bytes, iterations));
            }
            record("exchange", bytes, side.exchange(bytes, iterations));
            if (bytes <= side.flag_slot_bytes()) {
                record("flag_slot", bytes, side.flag_slot(bytes, iterations));
            }
        }
    }
    return rows;
}

constexpr std::string_view kUsage =
    "usage: shm_bench [--smoke] [--variants] [--rounds N]\n"
    "One-way times between two processes on one host.\n"
    "  --smoke      a few iterations, to see that it runs\n"
    "  --variants   several shapes of rings and modes of copies side by side\n"
    "  --rounds N   rounds of which the median is taken (60; with --smoke 1)\n";

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    bool smoke = false;
    if (const auto status = perf::read_options(
            argc, argv, kUsage, {{"--smoke", smoke}, {"--variants", settings.variants}},
            {{"--rounds", settings.rounds, 1 << 20}})) {
        return *status;
    }
    settings.rounds = settings.rounds != 0 ? settings.rounds : smoke ? 1 : 60;
    settings.work_ns = smoke ? 20000 : settings.work_ns;
    const std::vector<Variant> all = variants(settings);
    const std::vector<std::uint32_t> cpus = topo::usable_cpus();
    const auto cpu_count = static_cast<unsigned>(cpus.size());
    void* memory = ::mmap(nullptr, sizeof(CommonMemory), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("shm_bench: mmap");
        return 1;
    }
    auto& common = *static_cast<CommonMemory*>(memory);
    const pid_t child = ::fork();
    const int index = child == 0 ? 1 : 0;
    if (cpu_count >= 2) {
        bind_to(cpus[static_cast<std::size_t>(index)]);
    }
    Side side(common, index, all, cpu_count);
    std::vector<Row> rows = measure(side, settings, all);
    if (child == 0) {
        return 0;
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("# one way, two processes, %u usable CPUs, %u rounds\n", cpu_count,
                settings.rounds);
    std::printf("%-20s %9s %11s %11s %8s\n", "what", "bytes", "median_ns", "min_ns", "GB/s");
    for (Row& row : rows) {
        const double median = row.median();
        std::printf("%-20s %9llu %11.1f %11.1f %8.2f\n", row.name.c_str(),
                    static_cast<unsigned long long>(row.bytes), median, row.times_ns.front(),
                    static_cast<double>(row.bytes) / median);
    }
    return status == 0 ? 0 : 1;
}
