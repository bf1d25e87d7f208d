// ucg_plan guidelines: shows where predictions contradict one another.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/cli.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/guideline_checks.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/usual_placements.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

struct PlacedCheck {
    std::string placement;
    GuidelineCheck check;
};

class GuidelinesCommand final : public Command {
  public:
    explicit GuidelinesCommand(CLI::App& parent)
        : Command(*parent.add_subcommand(
              "guidelines", "Hold predictions against one another: a collective is no slower than "
                            "others that do its work, nor than itself with more bytes")) {
        add_size_option(app_, "--bytes", bytes_,
                        "Lengths of vectors, of all blocks together where there are blocks "
                        "(default: 8, 64, 512, ... 16M)")
            ->delimiter(',');
        app_.add_option("--tolerance", tolerance_percent_,
                        "By how many per cent a prediction may be larger (default: 5)")
            ->transform(real_number(0, 1000))
            ->type_name("NUMBER");
        profile_.add_option(app_);
        add_format_option(app_, format_, {Format::text, Format::json});
        app_.footer(
            "Prints violations, the worst first, for fourteen placements of 2 to 1024 ranks. "
            "Exit status 1 if there are any, as there are by the built-in costs.\n"
            "Examples:\n"
            "  ucg_plan guidelines\n"
            "  ucg_plan guidelines --bytes 16k,32k,64k --tolerance 20");
    }

    Status run() const override {
        const Result<cost::Profile> profile = profile_.load();
        if (!profile) {
            return profile.status();
        }
        const Result<std::vector<NamedPlacement>> placements = usual_placements();
        if (!placements) {
            return placements.status();
        }
        std::vector<std::uint64_t> bytes = bytes_;
        std::sort(bytes.begin(), bytes.end());
        std::size_t count = 0;
        std::vector<PlacedCheck> violated;
        for (const auto& [name, placement] : *placements) {
            for (GuidelineCheck& check :
                 check_guidelines(profile_.facts(placement, *profile), bytes)) {
                ++count;
                if (check.is_violated(tolerance_percent_ / 100)) {
                    violated.push_back({name, std::move(check)});
                }
            }
        }
        std::stable_sort(violated.begin(), violated.end(),
                         [](const PlacedCheck& a, const PlacedCheck& b) {
                             return a.check.ratio() > b.check.ratio();
                         });
        Status written = write_output("-", format_ == Format::json ? json(violated, count)
                                                                   : text(violated, count));
        if (!written.ok() || violated.empty()) {
            return written;
        }
        return failure(Code::invalid_argument, "{} of {} guidelines are violated", violated.size(),
                       count);
    }

  private:
    static std::string text(const std::vector<PlacedCheck>& violated, std::size_t count) {
        std::string text;
        for (const auto& [placement, check] : violated) {
            text += fmt::format("{:6.2f}  {}, {}: {:.3f} us, {:.3f} us ({})\n", check.ratio(),
                                placement, check.what, check.left_ns / 1000, check.right_ns / 1000,
                                check.rows);
        }
        return text + fmt::format("{} of {} guidelines hold\n", count - violated.size(), count);
    }

    static std::string json(const std::vector<PlacedCheck>& violated, std::size_t count) {
        Json list = Json::array();
        for (const auto& [placement, check] : violated) {
            list.push_back({{"placement", placement},
                            {"guideline", check.what},
                            {"ratio", check.ratio()},
                            {"left_ns", check.left_ns},
                            {"right_ns", check.right_ns},
                            {"algorithms", check.rows}});
        }
        return Json{{"checked", count}, {"violated", std::move(list)}}.dump(2) + "\n";
    }

    std::vector<std::uint64_t> bytes_ = {8,        64,        512,     4 << 10,
                                         32 << 10, 256 << 10, 2 << 20, 16 << 20};
    double tolerance_percent_ = 5;
    ProfileOption profile_;
    Format format_ = Format::text;
};

} // namespace

std::unique_ptr<Command> make_guidelines_command(CLI::App& parent) {
    return std::make_unique<GuidelinesCommand>(parent);
}

} // namespace ucg::tools
