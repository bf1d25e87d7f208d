#include "shm/mappings.hpp"

#include <map>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace ucg::shm {
namespace {

struct Mappings {
    std::mutex mutex;
    pid_t process = ::getpid();
    std::map<Token, std::weak_ptr<SharedSegment>> by_token;
};

/// Returns the mappings of this process. Never destroyed: a heap may end after the statics of the
/// program.
Mappings& mappings() {
    static auto& all = *new Mappings;
    return all;
}

/// Forgets mappings that have ended; in a forked child all, which are its parent's or copies of
/// them. REQUIRES: the caller holds the lock.
void forget_ended(Mappings& all) {
    const bool child = std::exchange(all.process, ::getpid()) != all.process;
    std::erase_if(all.by_token,
                  [child](const auto& entry) { return child || entry.second.expired(); });
}

} // namespace

void note_mapping(const Token& token, const std::shared_ptr<SharedSegment>& segment) {
    Mappings& all = mappings();
    const std::lock_guard lock(all.mutex);
    forget_ended(all);
    all.by_token[token] = segment;
}

Result<std::shared_ptr<SharedSegment>> map_once(const Token& token, std::uint64_t bytes,
                                                const MakeSegment& make) {
    Mappings& all = mappings();
    const std::lock_guard lock(all.mutex);
    forget_ended(all);
    if (const auto found = all.by_token.find(token); found != all.by_token.end()) {
        std::shared_ptr<SharedSegment> segment = found->second.lock();
        if (segment != nullptr && segment->bytes() == bytes) {
            return segment;
        }
    }
    Result<std::unique_ptr<SharedSegment>> made = make();
    if (!made.ok()) {
        return made.status();
    }
    std::shared_ptr<SharedSegment> segment = std::move(*made);
    all.by_token[token] = segment;
    return segment;
}

void let_go(const std::function<void()>& release) {
    Mappings& all = mappings();
    const std::lock_guard lock(all.mutex);
    release();
    forget_ended(all);
}

} // namespace ucg::shm
