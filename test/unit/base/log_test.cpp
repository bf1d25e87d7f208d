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
    set_log_handler(take, &text);
    log(LogLevel::error, "{} ranks", 3);
    log(LogLevel::trace, "never");
    pass_log_line("as it is\n", nullptr);
    set_log_handler(nullptr, nullptr);
    CHECK(text.starts_with('['));
    CHECK(text.ends_with("] ucg error: 3 ranks\nas it is\n"));
}

} // namespace ucg
