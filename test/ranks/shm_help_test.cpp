// How the shared-memory transport divides units among ranks that help one another: entries that are
// used again, and ranks that give up or are killed while they owe a unit.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "test/ranks/shm_group.hpp"

namespace {

using namespace ucg;
using test::first_ranks;
using transport::Help;
using transport::HelpedCall;
using transport::HelpedPart;
using transport::ShmAddress;
using transport::ShmTransport;
using State = transport::Help::State;

constexpr std::uint32_t kEntries = 64; ///< As many as ShmOptions allows to be outstanding.

/// A part of rank 0 that names ranks 0 and 1.
const std::vector<HelpedPart> kParts = {{0, 0, 2, {0, 1}}};

HelpedCall call_of(std::uint32_t sequence) {
    HelpedCall call;
    call.sequence = sequence;
    call.parts = kParts;
    return call;
}

/// Does all units of the part and ends the collective.
void finish(std::span<Help* const> ranks, std::uint32_t sequence) {
    for (std::uint64_t i = 0; i < kParts[0].units; ++i) {
        REQUIRE(ranks[1]->look(kParts[0], sequence) == State::ready);
        REQUIRE(ranks[1]->take(kParts[0], sequence) == i);
        ranks[1]->unit_done(kParts[0], sequence);
    }
    for (Help* rank : ranks) {
        REQUIRE(rank->look(kParts[0], sequence) == State::over);
        rank->end(sequence);
    }
}

} // namespace

TEST_CASE("transport/shm: a beginning of long ago is none of a later collective's",
          "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(2), {});
    const std::array<Help*, 2> ranks = {group.transports[0]->help(), group.transports[1]->help()};
    std::uint32_t sequence = 5;
    for (const std::uint32_t later : {kEntries, 1U << 30, (1U << 31) - kEntries, 1U << 31,
                                      (1U << 31) + kEntries, 0U - kEntries}) {
        INFO(sequence << " and then " << later << " later");
        ranks[0]->begin(call_of(sequence));
        ranks[1]->begin(call_of(sequence));
        finish(ranks, sequence);
        sequence += later;
        ranks[1]->begin(call_of(sequence));
        CHECK(ranks[1]->look(kParts[0], sequence) == State::waits);
        ranks[0]->begin(call_of(sequence));
        finish(ranks, sequence);
        // The owner goes on while the other rank still computes.
        sequence += kEntries;
        ranks[0]->begin(call_of(sequence));
        ranks[1]->begin(call_of(sequence));
        for (const std::uint32_t unit : {0U, 1U}) {
            REQUIRE(ranks[0]->take(kParts[0], sequence) == unit);
            ranks[0]->unit_done(kParts[0], sequence);
        }
        ranks[0]->end(sequence);
        ranks[0]->begin(call_of(sequence + kEntries));
        CHECK(ranks[1]->look(kParts[0], sequence) == State::over);
        CHECK_FALSE(ranks[1]->take(kParts[0], sequence).has_value());
        ranks[1]->end(sequence);
        sequence += kEntries;
        ranks[1]->begin(call_of(sequence));
        finish(ranks, sequence);
        sequence += kEntries;
    }
}

TEST_CASE("transport/shm: who lags has not begun what others have", "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(3), {});
    // Rank 1's part of the first collective is over without rank 2, which comes when rank 1 has
    // already begun the next collective that uses the entries.
    const HelpedPart of_last = {2, 0, 2, {0, 1, 2}};
    HelpedCall next = call_of(kEntries);
    next.parts = {&of_last, 1};
    Help& ahead = *group.transports[1]->help();
    Help& behind = *group.transports[2]->help();
    ahead.begin(call_of(0));
    ahead.end(0);
    ahead.begin(next);
    behind.begin(call_of(0));
    CHECK(ahead.look(of_last, kEntries) == State::waits);
    behind.end(0);
    behind.begin(next);
    group.transports[0]->help()->begin(next);
    CHECK(ahead.look(of_last, kEntries) == State::ready);
    for (Rank rank = 0; rank < 3; ++rank) {
        group.transports[static_cast<std::size_t>(rank)]->help()->end(kEntries);
    }
}

TEST_CASE("transport/shm: who gives up waits for the unit that another has taken",
          "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(2), {});
    const std::array<Help*, 2> ranks = {group.transports[0]->help(), group.transports[1]->help()};
    ranks[0]->begin(call_of(0));
    ranks[1]->begin(call_of(0));
    REQUIRE(ranks[1]->look(kParts[0], 0) == State::ready);
    REQUIRE(ranks[1]->take(kParts[0], 0) == 0U);
    std::atomic<bool> ended = false;
    std::thread gives_up([&] {
        group.transports[0]->abandon();
        ended = true;
    });
    while (ranks[1]->look(kParts[0], 0) == State::ready) { // The loop ends when the word is closed.
        std::this_thread::yield();
    }
    CHECK(ranks[1]->look(kParts[0], 0) == State::broken);
    CHECK_FALSE(ranks[1]->take(kParts[0], 0).has_value());
    CHECK_FALSE(ended.load());
    ranks[1]->unit_done(kParts[0], 0);
    gives_up.join();
    CHECK_FALSE(group.transports[1]->status().ok());
}

TEST_CASE("transport/shm: who awaits the beginning of a rank that has broken off fails",
          "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(2), {});
    ShmTransport& waits = *group.transports[1];
    group.transports[0]->break_off();
    waits.help()->begin(call_of(0));
    CHECK(waits.help()->look(kParts[0], 0) == State::waits);
    for (int i = 0; i < 10'000 && !waits.has_failed(); ++i) {
        waits.progress();
    }
    CHECK(waits.has_failed());
    CHECK(waits.status().code() == Code::unreachable);
    CHECK(waits.help()->look(kParts[0], 0) == State::broken);
}

TEST_CASE("transport/shm: bytes that are not there fail who would copy them",
          "[ranks][shm][help]") {
    const bool writes = GENERATE(false, true);
    test::ShmGroup group(first_ranks(2), {});
    if (!group.transports[1]->reaches_all()) {
        // The ranks do not map one another's memory, so the owner would be asked for the bytes.
        return;
    }
    std::array<std::byte, 64> here = {};
    void* const nowhere =
        ::mmap(nullptr, here.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(nowhere != MAP_FAILED);
    HelpedCall call = call_of(0);
    call.input = call.output = static_cast<std::byte*>(nowhere);
    call.input_bytes = call.output_bytes = here.size();
    const std::array<Help*, 2> ranks = {group.transports[0]->help(), group.transports[1]->help()};
    ranks[0]->begin(call);
    ranks[1]->begin(call_of(0));
    REQUIRE(ranks[1]->look(kParts[0], 0) == State::ready);
    REQUIRE(ranks[1]->take(kParts[0], 0) == 0U);
    using graph::BufferKind;
    CHECK((writes ? ranks[1]->write(0, BufferKind::output, 0, 0, here)
                  : ranks[1]->read(0, BufferKind::input, 0, 0, here)) == Help::Copied::no);
    CHECK(group.transports[1]->status().code() == Code::io_error);
    CHECK(ranks[1]->look(kParts[0], 0) == State::broken);
    ranks[1]->unit_done(kParts[0], 0);
    CHECK(ranks[0]->look(kParts[0], 0) == State::broken);
    ::munmap(nowhere, here.size());
}

TEST_CASE("transport/shm: whether peers get at a buffer is found out for each call",
          "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(2), {});
    if (!group.transports[0]->reaches_all()) {
        return;
    }
    constexpr std::size_t kBytes = 4096;
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    Help& help = *group.transports[0]->help();
    CHECK(help.reached(static_cast<std::byte*>(memory), kBytes));
    // This memory stands for memory that a driver has mapped.
    REQUIRE(::mprotect(memory, kBytes, PROT_NONE) == 0);
    CHECK_FALSE(help.reached(static_cast<std::byte*>(memory), kBytes));
    ::munmap(memory, kBytes);
}

namespace {

/// A collective of another plan than that of call_of(), by the flag slots or by messages.
constexpr std::uint16_t kOtherPlan = 1;

/// Returns what the rank finds in so many turns that it has compared what it waits for.
Code found_in_vain(ShmTransport& rank, const transport::FlagSlotSequence* awaited = nullptr) {
    for (int i = 0; i < 10'000 && !rank.has_failed(); ++i) {
        rank.progress();
        if (awaited != nullptr) {
            rank.flag_slots()->shared(*awaited, 0, 0);
        }
    }
    return rank.status().code();
}

} // namespace

TEST_CASE("transport/shm: a helped collective at one rank and another at its peer are noticed",
          "[ranks][shm][help]") {
    transport::ShmOptions options;
    options.rings_at_first = GENERATE(0U, 16U);
    test::ShmGroup group(first_ranks(3), options);
    ShmTransport& other = *group.transports[0];
    ShmTransport& rank = *group.transports[1];
    const transport::FlagSlotSequence by_flag_slots = {0, 5, kOtherPlan};
    auto data = test::filled(8, 1);
    SECTION("whose peer has shared something") {
        REQUIRE(other.flag_slots()->share(by_flag_slots, data.data(), data.size()));
        rank.help()->begin(call_of(5));
        CHECK(rank.help()->look(kParts[0], 5) == State::waits);
        CHECK(found_in_vain(rank) == Code::disagreement);
        CHECK(rank.help()->look(kParts[0], 5) == State::broken);
    }
    SECTION("by who waits for a share") {
        other.help()->begin(call_of(5));
        CHECK(found_in_vain(rank, &by_flag_slots) == Code::disagreement);
    }
    SECTION("by who waits for a message") {
        other.help()->begin(call_of(5));
        transport::Message awaited = test::message(test::kRecv, 0, data, 5);
        awaited.plan = kOtherPlan;
        rank.post({&awaited, 1});
        CHECK(found_in_vain(rank) == Code::disagreement);
        CHECK(awaited.state == transport::MessageState::failed);
    }
}

TEST_CASE("transport/shm: beginnings of another collective, or of long ago, contradict nothing",
          "[ranks][shm][help]") {
    test::ShmGroup group(first_ranks(2), {});
    const std::array<Help*, 2> ranks = {group.transports[0]->help(), group.transports[1]->help()};
    auto data = test::filled(8, 1);
    transport::Message awaited = test::message(test::kRecv, 0, data, 5);
    awaited.plan = kOtherPlan;
    SECTION("one of the same number, before the numbers began anew") {
        ranks[0]->begin(call_of(5));
        ranks[1]->begin(call_of(5));
        finish(ranks, 5);
    }
    SECTION("one that uses the same entry") {
        ranks[0]->begin(call_of(5 + kEntries));
    }
    SECTION("buffers that peers read") {
        REQUIRE(group.transports[0]->expose(5, {}, 0));
    }
    group.transports[1]->post({&awaited, 1});
    CHECK(found_in_vain(*group.transports[1]) == Code::ok);
    const transport::FlagSlotSequence by_flag_slots = {0, 5, kOtherPlan};
    CHECK(found_in_vain(*group.transports[1], &by_flag_slots) == Code::ok);
}

namespace {

/// State that two processes share from before they have heaps.
struct Rendezvous {
    std::array<std::atomic<int>, 3> stage;
    std::array<ShmAddress, 3> address;
};

/// The same in memory that children see, too.
struct SharedRendezvous {
    SharedRendezvous() {
        void* const memory = ::mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        rendezvous = new (memory) Rendezvous();
    }
    ~SharedRendezvous() { ::munmap(rendezvous, sizeof(Rendezvous)); }
    SharedRendezvous(const SharedRendezvous&) = delete;
    SharedRendezvous& operator=(const SharedRendezvous&) = delete;

    Rendezvous* rendezvous;
};

void await_stage(const std::atomic<int>& stage, int wanted) {
    for (int i = 0; i < 2000 && stage.load() < wanted; ++i) {
        ::usleep(5000);
    }
}

struct Member {
    std::unique_ptr<shm::Heap> heap;
    std::unique_ptr<ShmTransport> transport;

    Member(Rendezvous& rendezvous, std::size_t self, std::size_t count = 2,
           const std::vector<HelpedPart>& parts = kParts) {
        auto made_heap = shm::Heap::create({std::uint64_t{1} << 26});
        heap = std::move(*made_heap);
        const std::vector<Rank> ranks = first_ranks(static_cast<Rank>(count));
        auto made = ShmTransport::create(*heap, ranks, static_cast<Rank>(self), {});
        transport = std::move(*made);
        rendezvous.address[self] = transport->address();
        await_all(rendezvous, self, count, 1);
        const Status status = transport->connect(std::span(rendezvous.address).first(count));
        UCG_ASSERT(status.ok());
        HelpedCall call = call_of(0);
        call.parts = parts;
        transport->help()->begin(call);
        await_all(rendezvous, self, count, 2);
    }

  private:
    static void await_all(Rendezvous& rendezvous, std::size_t self, std::size_t count, int stage) {
        rendezvous.stage[self] = stage;
        for (std::size_t i = 0; i < count; ++i) {
            await_stage(rendezvous.stage[i], stage);
        }
    }
};

} // namespace

TEST_CASE("transport/shm: a unit that a killed rank has taken keeps nobody waiting",
          "[ranks][shm][help]") {
    const SharedRendezvous shared;
    Rendezvous& rendezvous = *shared.rendezvous;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Member mine(rendezvous, 1);
        mine.transport->help()->take(kParts[0], 0);
        rendezvous.stage[1] = 3;
        ::raise(SIGKILL);
    }
    Member mine(rendezvous, 0);
    Help& help = *mine.transport->help();
    await_stage(rendezvous.stage[1], 3);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(help.take(kParts[0], 0) == 1U);
    help.unit_done(kParts[0], 0);
    State state = State::taken;
    for (int i = 0; i < 100'000 && state == State::taken; ++i) {
        state = help.look(kParts[0], 0);
    }
    CHECK(state == State::broken);
    CHECK(mine.transport->status().code() == Code::io_error);
    mine.transport->abandon(); // The rank does not wait for the dead one here either.
}

TEST_CASE("transport/shm: a killed rank is noticed by whoever looks at other parts as well",
          "[ranks][shm][help]") {
    static const std::vector<HelpedPart> kOfEach = {{0, 0, 1, {0, 1}}, {0, 1, 1, {0, 2}}};
    const int looks = GENERATE(1, 3); // How often it looks at the other part in between.
    CAPTURE(looks);
    const SharedRendezvous shared;
    Rendezvous& rendezvous = *shared.rendezvous;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Member mine(rendezvous, 2, 3, kOfEach);
        mine.transport->help()->take(kOfEach[1], 0);
        rendezvous.stage[2] = 3;
        ::raise(SIGKILL);
    }
    std::unique_ptr<Member> helper; // The helper has taken a unit and stays away.
    std::thread joins([&] { helper = std::make_unique<Member>(rendezvous, 1, 3, kOfEach); });
    Member mine(rendezvous, 0, 3, kOfEach);
    joins.join();
    await_stage(rendezvous.stage[2], 3);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(helper->transport->help()->take(kOfEach[0], 0) == 0U);
    Help& help = *mine.transport->help();
    State state = State::taken;
    for (int i = 0; i < 100'000 && state == State::taken; ++i) {
        for (int k = 0; k < looks && state == State::taken; ++k) {
            state = help.look(kOfEach[0], 0);
        }
        state = state == State::taken ? help.look(kOfEach[1], 0) : state;
    }
    CHECK(state == State::broken);
    CHECK(mine.transport->status().code() == Code::io_error);
    helper->transport->help()->unit_done(kOfEach[0], 0);
    mine.transport->abandon();
    helper->transport->abandon();
}

TEST_CASE("transport/shm: who gives up because of a killed rank waits for the living",
          "[ranks][shm][help]") {
    static const std::vector<HelpedPart> kOfAll = {{0, 0, 2, {0, 1, 2}}};
    const SharedRendezvous shared;
    Rendezvous& rendezvous = *shared.rendezvous;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const Member mine(rendezvous, 2, 3, kOfAll);
        ::raise(SIGKILL);
    }
    std::unique_ptr<Member> helper;
    std::thread joins([&] { helper = std::make_unique<Member>(rendezvous, 1, 3, kOfAll); });
    Member mine(rendezvous, 0, 3, kOfAll);
    joins.join();
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(helper->transport->help()->take(kOfAll[0], 0) == 0U);
    constexpr auto kPatience = std::chrono::seconds(1); // abandon() waits no longer.
    const auto began = std::chrono::steady_clock::now();
    std::atomic<bool> ended = false;
    std::thread gives_up([&] {
        mine.transport->abandon();
        ended = true;
    });
    ::usleep(50'000); // If abandon() does not wait, it has returned by then.
    const bool ended_early = ended;
    if (std::chrono::steady_clock::now() - began < kPatience) {
        CHECK_FALSE(ended_early);
    } else {
        WARN("this machine is too busy to see whether abandon() waits");
    }
    helper->transport->help()->unit_done(kOfAll[0], 0);
    gives_up.join();
    helper->transport->abandon();
}

TEST_CASE("transport/shm: a number of another PID namespace tells of no death",
          "[ranks][shm][help]") {
    const SharedRendezvous shared;
    Rendezvous& rendezvous = *shared.rendezvous;
    const pid_t between = ::fork();
    REQUIRE(between >= 0);
    if (between == 0) {
        if (::unshare(CLONE_NEWPID) != 0) {
            rendezvous.stage[1] = -1;
            ::_exit(0);
        }
        const pid_t inside = ::fork();
        if (inside == 0) { // In the inner namespace no process has the number of the outer one.
            Member mine(rendezvous, 1);
            Help& help = *mine.transport->help();
            const bool taken = help.take(kParts[0], 0) && help.take(kParts[0], 0);
            State state = State::taken;
            for (int i = 0; i < 100'000 && state == State::taken; ++i) {
                state = help.look(kParts[0], 0);
            }
            rendezvous.stage[1] = 3;
            ::_exit(taken && state == State::taken ? 0 : 1);
        }
        int status = 0;
        ::_exit(::waitpid(inside, &status, 0) == inside && status == 0 ? 0 : 1);
    }
    for (int i = 0; i < 20'000 && rendezvous.stage[1] == 0; ++i) {
        ::usleep(1000);
    }
    if (rendezvous.stage[1] < 0) {
        WARN("no PID namespace can be made here");
    } else {
        Member mine(rendezvous, 0);
        await_stage(rendezvous.stage[1], 3);
    }
    int status = 0;
    REQUIRE(::waitpid(between, &status, 0) == between);
    CHECK(status == 0);
}
