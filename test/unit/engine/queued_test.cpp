// Progress looks at no collective that cannot have begun, however many are queued: those lie in
// memory here that cannot be read meanwhile.
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/engine/held.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/builder.hpp"

namespace ucg {
namespace {

using engine::Execution;
using engine::ExecutionState;
using test::Held;
using test::receives;

/// Collectives in memory of their own.
class Executions {
  public:
    Executions(const engine::Program& program, std::size_t count) : count_(count) {
        memory_ = ::mmap(nullptr, count * stride_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory_ != MAP_FAILED);
        for (std::size_t i = 0; i < count; ++i) {
            new (place(i)) Execution(program);
        }
    }
    ~Executions() {
        for (std::size_t i = 0; i < count_; ++i) {
            (*this)[i].~Execution();
        }
        ::munmap(memory_, count_ * stride_);
    }
    Executions(const Executions&) = delete;
    Executions& operator=(const Executions&) = delete;

    Execution& operator[](std::size_t i) const {
        return *std::launder(reinterpret_cast<Execution*>(place(i)));
    }
    /// Keeps everybody from reading those from `first` on, or permits it.
    void hide(std::size_t first) const { protect(first, PROT_NONE); }
    void show(std::size_t first) const { protect(first, PROT_READ | PROT_WRITE); }

  private:
    void protect(std::size_t first, int protection) const {
        REQUIRE(::mprotect(place(first), (count_ - first) * stride_, protection) == 0);
    }
    std::byte* place(std::size_t i) const { return static_cast<std::byte*>(memory_) + i * stride_; }

    const std::size_t stride_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t count_;
    void* memory_;
};

} // namespace

TEST_CASE("engine: progress does not look at collectives that cannot have begun", "[engine]") {
    constexpr std::size_t kWindow = engine::kOutstandingMax;
    constexpr std::size_t kCount = 3 * kWindow;
    static_assert(sizeof(Execution) < 4096);
    Held transport;
    const std::array<transport::Transport*, 2> routes = {&transport, nullptr};
    const engine::Program program = engine::lower(receives(), routes, 0, {}).value();
    std::array<std::byte, 8> output = {};
    const Executions all(program, kCount);
    engine::Engine engine{{&transport}};
    for (std::size_t i = 0; i < kCount; ++i) {
        engine.start(all[i], {nullptr, output.data(), {}});
    }
    REQUIRE(transport.posted.size() == kWindow);
    // The first one that is too far ahead may be looked at.
    all.hide(kWindow + 1);
    CHECK(engine.progress() == 0);
    CHECK(engine.take_operator() == nullptr);
    transport.posted[1]->state = transport::MessageState::done;
    CHECK(engine.progress() == 1);
    CHECK(all[1].state() == ExecutionState::done);
    CHECK(transport.posted.size() == kWindow); // None begins, since the first goes on.
    all.show(kWindow + 1);
    transport.posted[0]->state = transport::MessageState::done;
    CHECK(engine.progress() == 1);
    CHECK(transport.posted.size() == kWindow + 2); // Two have ended.
    for (std::size_t i = 2; i < kCount; ++i) {
        transport.posted[i]->state = transport::MessageState::done;
        CHECK(engine.progress() == 1);
    }
    CHECK(engine.idle());
}

} // namespace ucg
