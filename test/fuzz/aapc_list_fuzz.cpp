// Fuzzes the reader of schedules of phases. A text that is a list prints and is read back to an
// equal value, and the steps of its machines fit together; any other text is refused as a wrong
// argument, with its line.
#include <cstddef>
#include <cstdint>
#include <map>

#include "ucg_coll/aapc/aapc.hpp"

namespace {

using namespace ucg;

/// Checks that every word that one machine sends is awaited by another.
void check_steps(const aapc::Listed& listed) {
    std::map<std::pair<aapc::Position, aapc::Position>, std::int64_t> words;
    for (aapc::Position machine = 0; machine < listed.machines.size(); ++machine) {
        for (const aapc::MemberStep& step : aapc::steps_of(listed, machine)) {
            for (const aapc::Signal& signal : step.signals) {
                ++words[{machine, signal.to}];
            }
            for (const aapc::Position other : step.awaits) {
                --words[{other, machine}];
            }
        }
    }
    for (const auto& [pair, balance] : words) {
        UCG_ASSERT(balance == 0);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Result<aapc::Listed> listed = aapc::parse_listed(text);
    if (!listed.ok()) {
        UCG_ASSERT(listed.status().code() == Code::invalid_argument);
        UCG_ASSERT(listed.status().message().starts_with("line "));
        return 0;
    }
    const Result<aapc::Listed> again = aapc::parse_listed(aapc::to_text(*listed));
    UCG_ASSERT(again.ok() && *again == *listed);
    if (listed->machines.size() <= 16) {
        check_steps(*listed);
    }
    return 0;
}
