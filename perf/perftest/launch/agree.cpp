#include "perf/perftest/launch/agree.hpp"

namespace ucg::perftest {

namespace {

/// Returns the code as one character, followed by the sentence.
std::string pack(const Status& status) {
    std::string text(1, static_cast<char>(status.code()));
    return text.append(status.message());
}

} // namespace

Status agree(Runtime& runtime, const Status& mine) {
    const Result<std::vector<std::string>> all = runtime.exchange(pack(mine));
    if (!all) {
        // A lost process explains less than a failure that occurred here before.
        return mine.ok() ? all.status() : mine;
    }
    for (const std::string& text : *all) {
        const auto code = static_cast<Code>(text.empty() ? 0 : text[0]);
        if (code != Code::ok) {
            return {code, text.substr(1)};
        }
    }
    return {};
}

} // namespace ucg::perftest
