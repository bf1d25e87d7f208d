#include "perf/perftest/breakdown/model.hpp"

#include <cmath>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest::breakdown {

namespace {

double sum_of(const std::vector<Term>& terms) {
    double sum = 0;
    for (const Term& term : terms) {
        sum += term.ns();
    }
    return sum;
}

void append(std::vector<Term>& terms, const std::vector<Component>& components, double times = 1) {
    for (const Component& component : components) {
        terms.push_back({component, times});
    }
}

} // namespace

std::string_view name(Category category) {
    switch (category) {
    case Category::llp: return "LLP";
    case Category::hlp: return "HLP";
    case Category::misc: return "Misc";
    case Category::io: return "I/O";
    case Category::network: return "Network";
    }
    return "";
}

double TimeModel::total_ns() const {
    return sum_of(terms);
}

double TimeModel::total_ns(Category category) const {
    double sum = 0;
    for (const Term& term : terms) {
        sum += term.component.category == category ? term.ns() : 0;
    }
    return sum;
}

TimeModel with_reduction(const TimeModel& model, std::string_view component, double fraction) {
    TimeModel result = model;
    for (Term& term : result.terms) {
        if (term.component.name == component) {
            term.component.ns *= 1 - fraction;
        }
    }
    return result;
}

TimeModel with_reduction(const TimeModel& model, Category category, double fraction) {
    TimeModel result = model;
    for (Term& term : result.terms) {
        if (term.component.category == category) {
            term.component.ns *= 1 - fraction;
        }
    }
    return result;
}

TimeModel injection_model(std::string name, const InjectionParts& parts) {
    TimeModel model = {std::move(name), {}};
    append(model.terms, parts.post);
    if (parts.messages_per_completion > 0) {
        append(model.terms, parts.progress, 1 / parts.messages_per_completion);
    }
    model.terms.insert(model.terms.end(), parts.misc.begin(), parts.misc.end());
    return model;
}

double posts_per_poll_min(double gen_completion_ns, double post_ns) {
    UCG_ASSERT(post_ns > 0);
    return std::ceil(gen_completion_ns / post_ns);
}

TimeModel latency_model(std::string name, const LatencyParts& parts) {
    TimeModel model = {std::move(name), {}};
    append(model.terms, parts.post);
    model.terms.insert(model.terms.end(), parts.path.begin(), parts.path.end());
    append(model.terms, parts.progress);
    return model;
}

double Comparison::error_with_missing() const {
    return error_of(model.total_ns() + sum_of(missing), observed.ns);
}

} // namespace ucg::perftest::breakdown
