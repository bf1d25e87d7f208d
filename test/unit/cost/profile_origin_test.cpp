#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::cost {
namespace {

TEST_CASE("cost/profile origin: the text says which processor it was measured on", "[cost]") {
    const std::string processor = processor_text({"AuthenticAMD", 25, 17});
    CHECK(processor == "AuthenticAMD family 25 model 17");
    CHECK(processor_text({}).empty());
    const std::string text = to_toml(default_profile());
    CHECK(measured_on(text).empty());
    CHECK(origin_toml("").empty());
    const std::string named = text + origin_toml(processor);
    CHECK(measured_on(named) == processor);
    CHECK(parse_toml(named).value() == default_profile());
    CHECK(measured_on("version = 1\n[measured]\nprocessor = 3\n").empty());
    CHECK(parse_toml("version = 1\n[measured]\nprocessor = 3\n").status().message() ==
          "line 3: measured.processor: expected text, found 3");
    CHECK(measured_on("[[").empty());
}

} // namespace
} // namespace ucg::cost
