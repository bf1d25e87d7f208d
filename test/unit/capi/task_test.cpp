// Coroutines that await one another: which one runs when, and when their locals are destroyed.
#include <coroutine>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/task.hpp"

namespace {

using ucg::capi::Task;

/// A gate that the innermost task waits for.
struct Gate {
    std::coroutine_handle<> waiting;

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { waiting = handle; }
    void await_resume() const noexcept {}
    void open() { std::exchange(waiting, nullptr).resume(); }
};

/// A local variable that notes its destruction.
struct Local {
    Local(std::vector<std::string>& notes, std::string text)
        : diary(&notes), name(std::move(text)) {}
    ~Local() { diary->push_back(name); }
    Local(const Local&) = delete;
    Local& operator=(const Local&) = delete;

    std::vector<std::string>* diary;
    std::string name;
};

Task<int> answer(Gate& gate, std::vector<std::string>& diary) {
    const Local local(diary, "answer");
    co_await gate;
    co_return 42;
}

Task<std::unique_ptr<int>> twice(Gate& gate, std::vector<std::string>& diary) {
    const Local local(diary, "twice");
    const int first = co_await answer(gate, diary);
    const int second = co_await answer(gate, diary);
    co_return std::make_unique<int>(first + second);
}

Task<int> fail(Gate& gate) {
    co_await gate;
    throw std::bad_alloc();
}

Task<int> recover(Gate& gate) {
    try {
        co_return co_await fail(gate);
    } catch (const std::bad_alloc&) {
    }
    co_await gate;
    co_return co_await fail(gate);
}

Task<int> at_once(int value) {
    co_return value;
}

Task<int> sum(int count) {
    int total = 0;
    for (int i = 0; i < count; ++i) {
        total += co_await at_once(1);
    }
    co_return total;
}

} // namespace

TEST_CASE("task: it begins when it is started, and gives a value that can only be moved",
          "[capi][task]") {
    Gate gate;
    std::vector<std::string> diary;
    Task<std::unique_ptr<int>> task = twice(gate, diary);
    CHECK_FALSE(gate.waiting);
    task.start();
    CHECK_FALSE(task.ended());
    gate.open();
    CHECK(diary == std::vector<std::string>{"answer"});
    CHECK_FALSE(task.ended());
    gate.open();
    REQUIRE(task.ended());
    CHECK(*task.outcome() == 84);
    CHECK(diary == std::vector<std::string>{"answer", "answer", "twice"});
}

TEST_CASE("task: what is thrown comes to who awaits, and out of the last one", "[capi][task]") {
    Gate gate;
    Task<int> task = recover(gate);
    task.start();
    gate.open();
    CHECK_FALSE(task.ended());
    gate.open();
    gate.open();
    REQUIRE(task.ended());
    CHECK_THROWS_AS(task.outcome(), std::bad_alloc);
}

TEST_CASE("task: one that is given up ends the locals of all that wait in it, innermost first",
          "[capi][task]") {
    Gate gate;
    std::vector<std::string> diary;
    {
        Task<std::unique_ptr<int>> task = twice(gate, diary);
        task.start();
    }
    CHECK(diary == std::vector<std::string>{"answer", "twice"});
    diary.clear();
    { const Task<std::unique_ptr<int>> task = twice(gate, diary); }
    CHECK(diary.empty());
}

TEST_CASE("task: a task may be moved before it begins, and when it has", "[capi][task]") {
    Gate gate;
    std::vector<std::string> diary;
    Task<int> first = answer(gate, diary);
    Task<int> second = std::move(first);
    second.start();
    first = std::move(second);
    gate.open();
    REQUIRE(first.ended());
    CHECK(first.outcome() == 42);
}

TEST_CASE("task: those that end without waiting need no deeper stack", "[capi][task]") {
    Task<int> task = sum(1000);
    task.start();
    REQUIRE(task.ended());
    CHECK(task.outcome() == 1000);
}
