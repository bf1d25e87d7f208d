#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/base/log.hpp"
#include "ucg_coll/base/log_handler.hpp"

namespace ucg {

TEST_CASE("who asks for the log has its lines, as far as the level goes") {
    std::string text;
    const auto take = [](const char* line, void* argument) {
        *static_cast<std::string*>(argument) += line;
    };
    CHECK(set_log_sink({take, &text}).take == nullptr);
    log(LogLevel::error, "{} ranks", 3);
    log(LogLevel::trace, "never");
    pass_log_line("as it is\n", nullptr);
    const LogSink before = set_log_sink({});
    CHECK(before.argument == &text);
    CHECK(text.starts_with('['));
    CHECK(text.ends_with("] ucg error: 3 ranks\nas it is\n"));
}

} // namespace ucg
