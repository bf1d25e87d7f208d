#include "ucg_coll/aapc/listed.hpp"

#include <fmt/format.h>

#include "ucg_coll/base/hash.hpp"

namespace ucg::aapc {

Listed list_schedule(const Phases& phases, std::vector<std::string> names) {
    const Layout& layout = phases.layout();
    UCG_ASSERT(names.size() == layout.member_count());
    const auto by_member = [&](const Use& use) {
        return Use{use.phase,
                   {layout.member(use.message.source), layout.member(use.message.target)}};
    };
    Listed listed{std::move(names), phases.count(), {}, {}};
    for (const Use& use : all_messages(phases)) {
        listed.messages.push_back(by_member(use));
    }
    for (const Sync& sync : minimal_syncs(phases)) {
        listed.syncs.push_back({by_member(sync.earlier), by_member(sync.later)});
    }
    return listed;
}

std::string to_text(const Listed& listed) {
    fmt::memory_buffer text;
    const auto print = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    };
    print("aapc 1\nmachines {}\n", listed.machines.size());
    for (const std::string& name : listed.machines) {
        print("{}\n", name);
    }
    print("phases {}\n", listed.phase_count);
    std::size_t next = 0;
    for (std::uint64_t phase = 0; phase < listed.phase_count; ++phase) {
        const char* separator = "";
        for (; next < listed.messages.size() && listed.messages[next].phase == phase; ++next) {
            const PhaseMessage message = listed.messages[next].message;
            print("{}{}>{}", separator, message.source, message.target);
            separator = " ";
        }
        print("\n");
    }
    print("syncs {}\n", listed.syncs.size());
    for (const Sync& sync : listed.syncs) {
        print("{}>{} {}>{}\n", sync.earlier.message.source, sync.earlier.message.target,
              sync.later.message.source, sync.later.message.target);
    }
    return fmt::to_string(text);
}

std::uint64_t hash_of(const Listed& listed) {
    return Hash().bytes(to_text(listed)).digest();
}

} // namespace ucg::aapc
