// ucg_plan search: finds the cheapest schedules of recursive multiplying under a model of the
// network.
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "tools/cli.hpp"
#include "tools/progress_line.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/schedule_search.hpp"
#include "tools/ucg_sim/prices_option.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFooter =
    "The collective is allreduce; the schedules are those that recursive_multiplying takes as its\n"
    "argument: products (a6,a4), collapses (c8m2,...,e8m2) and merges (m1g2a3,n1g3a2), also "
    "within\n"
    "one another. Products under the postal models cost their closed form. Others are simulated,\n"
    "unless a lower bound shows that they are too dear; the result is that of simulating all.\n"
    "Schedules whose factors are in another order only are priced once, in falling order, unless\n"
    "--every-order is given. The models are those of ucg_sim.\n"
    "Examples:\n"
    "  ucg_plan search --collective allreduce --ranks 24 --bytes 8 --model pipelining-postal \\\n"
    "    --alpha-p 400ns --alpha-r 100ns --beta 0.4ns --compute 10ns --top 5\n"
    "  ucg_plan search --collective allreduce --ranks 12 --bytes 8 --profile cluster.toml \\\n"
    "    --model network.median\n"
    "  ucg_plan search --collective allreduce --ranks 97 --bytes 8 --format json";

struct Answer {
    SearchResult result;
    std::string planner;                  ///< Why the planner has no choice; empty if it has one.
    std::optional<PricedSchedule> chosen; ///< The planner's choice with its price.
};

class SearchCommand final : public Command {
  public:
    explicit SearchCommand(CLI::App& parent)
        : Command(*parent.add_subcommand(
              "search",
              "Find the cheapest of all schedules of recursive multiplying, for an allreduce, "
              "under a model")) {
        question_.add_options(app_, QuestionOptions::Needs::collective);
        app_.get_option("--collective")->description("The collective: allreduce");
        profile_.add_option(app_, &question_);
        prices_.add_options(app_);
        const auto add_count = [this](const std::string& flag, auto& value, std::string text) {
            text += fmt::format(" (default: {})", value);
            using Count = std::decay_t<decltype(value)>;
            app_.add_option(flag, value, text)
                ->transform(whole_number(1, std::numeric_limits<Count>::max()))
                ->type_name("COUNT");
        };
        add_count("--top", top_, "Report so many");
        add_count("--limit", schedules_limit_, "Look at so many schedules at most");
        add_count("--simulations", runs_limit_, "Simulate so many at most");
        app_.add_option("--max-base", base_max_,
                        fmt::format("No phase has a larger base, 2 to {} (default: any)",
                                    plan::kPhaseOperandsMax))
            ->transform(whole_number(2, plan::kPhaseOperandsMax))
            ->type_name("BASE");
        app_.add_flag("--every-order", every_order_, "Factors in every order");
        add_format_option(app_, format_, {Format::text, Format::json});
        app_.parse_complete_callback([this] {
            question_.check();
            prices_.check();
            if (question_.collective() != graph::Collective::allreduce) {
                throw CLI::ValidationError("--collective",
                                           fmt::format("search: expected allreduce, found {}",
                                                       graph::name(question_.collective())));
            }
        });
        app_.footer(std::string(kFooter));
    }

    Status run() const override {
        const Result<topo::Placement> placement = question_.placement();
        if (!placement) {
            return placement.status();
        }
        const Result<cost::Profile> profile = profile_.load();
        if (!profile) {
            return profile.status();
        }
        const Question asked = question_.question(*placement);
        if (Status status = check(asked); !status.ok()) {
            return status;
        }
        sim::Options options;
        const plan::Facts facts =
            plan::facts_for(profile_.facts(*placement, *profile), asked.collective);
        prices_.apply(facts, options);
        if (Status status = sim::check(options, asked.rank_count); !status.ok()) {
            return status;
        }
        const SearchQuestion question = {
            .facts = facts,
            .options = options,
            .request = request_of(asked, 0),
            .bounds = {every_order_ ? Orders::every : Orders::falling, base_max_},
            .top = top_,
            .schedules_limit = schedules_limit_,
            .runs_limit = runs_limit_};
        const Result<Answer> answer = find(question);
        if (!answer) {
            return answer.status();
        }
        const std::string title = fmt::format("{} ({})", describe(asked), describe(*placement));
        const std::string prices = prices_.describe(*profile);
        return write_output("-", format_ == Format::json ? json(asked, prices, *answer)
                                                         : text(title, prices, *answer));
    }

  private:
    static Status check(const Question& question) {
        if (question.rank_count < 2) {
            return failure(Code::invalid_argument, "search: one rank needs no schedule");
        }
        return graph::validate(request_of(question, 0), 0);
    }

    static Result<SearchResult> search(const SearchQuestion& question) {
        ProgressLine line;
        return search_schedules(
            question, [&](std::string_view stage, std::uint64_t done, std::uint64_t most) {
                line.update([&] {
                    return fmt::format("{} of at most {} schedules {}", done, most, stage);
                });
            });
    }

    static Result<Answer> find(const SearchQuestion& question) {
        Result<SearchResult> result = search(question);
        if (!result) {
            return result.status();
        }
        Answer answer{std::move(*result), {}, {}};
        const Result<plan::MultiplyingSchedule> choice = planner_choice(question);
        if (!choice) {
            answer.planner = choice.status().message();
            return answer;
        }
        Result<PricedSchedule> priced = price_schedule(question, to_text(*choice));
        if (!priced) {
            return priced.status();
        }
        answer.chosen = std::move(*priced);
        return answer;
    }

    std::string text(const std::string& title, const std::string& prices,
                     const Answer& answer) const {
        const SearchResult& result = answer.result;
        std::string text = fmt::format("{}\n{}\n{} schedules, {} of them simulated\n", title,
                                       prices, result.enumerated, result.simulated);
        if (!result.all_enumerated) {
            text += "--limit was reached: there are more schedules\n";
        }
        if (!result.all_priced) {
            text += "--simulations was reached: others may be cheaper\n";
        }
        std::size_t width = answer.chosen ? answer.chosen->text.size() : 0;
        for (const PricedSchedule& one : result.best) {
            width = std::max(width, one.text.size());
        }
        const auto line = [&](const PricedSchedule& one) {
            const double least_ns = result.best.front().ns;
            return fmt::format("  {:<{}}  {:>12.3f} ns  {:<11}{}\n", one.text, width, one.ns,
                               one.simulated ? "simulated" : "closed form",
                               least_ns > 0 ? fmt::format("  {:.4f}", one.ns / least_ns) : "");
        };
        for (const PricedSchedule& one : result.best) {
            text += line(one);
        }
        return text + "the planner's choice at these prices:\n" +
               (answer.chosen ? line(*answer.chosen) : fmt::format("  none: {}\n", answer.planner));
    }

    std::string json(const Question& question, const std::string& prices,
                     const Answer& answer) const {
        const auto object_of = [](const PricedSchedule& one) {
            return Json{{"schedule", one.text},
                        {"ns", one.ns},
                        {"by", one.simulated ? "simulation" : "closed form"}};
        };
        Json best = Json::array();
        for (const PricedSchedule& one : answer.result.best) {
            best.push_back(object_of(one));
        }
        const Json object = {{"collective", graph::name(question.collective)},
                             {"ranks", question.rank_count},
                             {"bytes", question.bytes},
                             {"prices", prices},
                             {"schedules", answer.result.enumerated},
                             {"simulated", answer.result.simulated},
                             {"complete", answer.result.all_enumerated && answer.result.all_priced},
                             {"best", std::move(best)},
                             {"planner", answer.chosen ? object_of(*answer.chosen) : Json()}};
        return object.dump(2) + "\n";
    }

    QuestionOptions question_;
    ProfileOption profile_;
    PricesOptions prices_;
    std::size_t top_ = 5;
    std::uint64_t schedules_limit_ = 100'000'000; // Ten seconds on a processor of 2020.
    std::uint64_t runs_limit_ = 20'000;           // Half a minute for a hundred ranks.
    Rank base_max_ = plan::kPhaseOperandsMax;
    bool every_order_ = false;
    Format format_ = Format::text;
};

} // namespace

std::unique_ptr<Command> make_search_command(CLI::App& parent) {
    return std::make_unique<SearchCommand>(parent);
}

} // namespace ucg::tools
