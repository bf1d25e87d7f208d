// The TOML form of Profile.
#include <algorithm>
#include <cmath>
#include <iterator>

// Compiled from the headers and without exceptions, so that neither leaves this file.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

namespace {

// One number of a table: its key and where it lives.
template <typename T>
struct Field {
    std::string_view key;
    double T::*member;
};

constexpr std::array<Field<LogGp>, 4> kLevelFields = {{
    {"latency_ns", &LogGp::latency_ns},
    {"overhead_ns", &LogGp::overhead_ns},
    {"gap_ns", &LogGp::gap_ns},
    {"gap_per_byte_ns", &LogGp::gap_per_byte_ns},
}};

constexpr std::array<Field<Profile>, 3> kComputeFields = {{
    {"copy_per_byte_ns", &Profile::copy_per_byte_ns},
    {"reduce_per_byte_ns", &Profile::reduce_per_byte_ns},
    {"reduce_fixed_ns", &Profile::reduce_fixed_ns},
}};

constexpr std::string_view kCompute = "compute";
constexpr std::string_view kLevels = "levels";

// The shortest decimal that reads back as the same number, in TOML's syntax for floats.
std::string format_float(double value) {
    UCG_ASSERT(std::isfinite(value));
    const std::string text = fmt::to_string(value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

template <typename T, std::size_t count>
void print_fields(fmt::memory_buffer& text, const T& values,
                  const std::array<Field<T>, count>& fields) {
    for (const Field<T>& field : fields) {
        fmt::format_to(std::back_inserter(text), "{} = {}\n", field.key,
                       format_float(values.*field.member));
    }
}

// The first failure sticks; what is read after it does not count.
class Reader {
  public:
    const Status& status() const { return status_; }

    void fail(const toml::source_region& where, std::string_view key, std::string_view problem) {
        if (status_.ok()) {
            status_ =
                failure(Code::invalid_argument, "line {}: {}: {}", where.begin.line, key, problem);
        }
    }

    // The table `name` of `parent`; null after a failure.
    const toml::table* table(const toml::table& parent, std::string_view name,
                             const std::string& path) {
        const toml::node* node = parent.get(name);
        if (node == nullptr || !node->is_table()) {
            fail((node != nullptr ? *node : parent).source(), path,
                 fmt::format("expected a table, found {}", describe(node)));
            return nullptr;
        }
        return node->as_table();
    }

    template <typename T, std::size_t count>
    void fields(const toml::table& table, const std::string& path, T& values,
                const std::array<Field<T>, count>& fields) {
        for (const Field<T>& field : fields) {
            values.*field.member = number(table, field.key, fmt::format("{}.{}", path, field.key));
        }
        const auto is_field = [&](std::string_view key) {
            return std::any_of(fields.begin(), fields.end(),
                               [&](const Field<T>& field) { return field.key == key; });
        };
        reject_others(table, path, is_field);
    }

    // A key that nobody reads is a misspelt one.
    template <typename Known>
    void reject_others(const toml::table& table, const std::string& path, const Known& known) {
        for (const auto& [key, node] : table) {
            if (!known(key.str())) {
                fail(key.source(), path.empty() ? key.str() : fmt::format("{}.{}", path, key.str()),
                     "expected only keys of a profile, found this one");
            }
        }
    }

  private:
    static std::string describe(const toml::node* node) {
        if (node == nullptr) {
            return "nothing";
        }
        if (node->is_number()) {
            return fmt::format("{}", *node->value<double>());
        }
        if (const auto value = node->value<std::string_view>()) {
            return fmt::format("\"{}\"", *value);
        }
        if (node->is_boolean()) {
            return "a truth value";
        }
        return node->is_array() ? "an array" : node->is_table() ? "a table" : "a date or time";
    }

    double number(const toml::table& table, std::string_view key, const std::string& path) {
        const toml::node* node = table.get(key);
        const bool is_number = node != nullptr && node->is_number();
        const auto value = is_number ? node->value<double>() : std::nullopt;
        if (!value || !std::isfinite(*value) || *value < 0) {
            fail((node != nullptr ? *node : table).source(), path,
                 fmt::format("expected a number of nanoseconds, not negative, found {}",
                             describe(node)));
            return 0;
        }
        return *value;
    }

    Status status_;
};

} // namespace

std::string to_toml(const Profile& profile) {
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "# UCG cost profile. Times are in nanoseconds.\n\n[{}]\n", kCompute);
    print_fields(text, profile, kComputeFields);
    for (std::size_t i = 0; i < profile.levels.size(); ++i) {
        fmt::format_to(out, "\n[{}.{}]\n", kLevels, topo::name(static_cast<topo::Distance>(i)));
        print_fields(text, profile.levels[i], kLevelFields);
    }
    return fmt::to_string(text);
}

static void read_levels(Reader& reader, const toml::table& levels, Profile& profile) {
    for (std::size_t i = 0; i < profile.levels.size(); ++i) {
        const std::string_view level = topo::name(static_cast<topo::Distance>(i));
        const std::string path = fmt::format("{}.{}", kLevels, level);
        if (const toml::table* table = reader.table(levels, level, path)) {
            reader.fields(*table, path, profile.levels[i], kLevelFields);
        }
    }
    reader.reject_others(levels, std::string(kLevels), [](std::string_view key) {
        for (std::size_t i = 0; i < topo::kDistanceCount; ++i) {
            if (key == topo::name(static_cast<topo::Distance>(i))) {
                return true;
            }
        }
        return false;
    });
}

Result<Profile> parse_toml(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return failure(Code::invalid_argument, "line {}, column {}: {}", error.source().begin.line,
                       error.source().begin.column, error.description());
    }
    const toml::table& root = parsed.table();
    Profile profile;
    Reader reader;
    if (const toml::table* compute = reader.table(root, kCompute, std::string(kCompute))) {
        reader.fields(*compute, std::string(kCompute), profile, kComputeFields);
    }
    if (const toml::table* levels = reader.table(root, kLevels, std::string(kLevels))) {
        read_levels(reader, *levels, profile);
    }
    reader.reject_others(root, "",
                         [](std::string_view key) { return key == kCompute || key == kLevels; });
    if (!reader.status().ok()) {
        return reader.status();
    }
    return profile;
}

} // namespace ucg::cost
