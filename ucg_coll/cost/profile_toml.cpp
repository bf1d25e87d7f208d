// The TOML form of Profile.
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

// Compiled from the headers and without exceptions, so that neither leaves this file.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// toml++ 3.3 asserts, or with NDEBUG assumes, that a table's name begins like a key, which "[,"
// does not: a typing error in a file would end the process. The code behind the assertion reports
// it as an error like any other, provided that nothing is asserted or assumed.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "ucg_coll/cost/profile.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::cost {

namespace {

constexpr std::string_view kVersionKey = "version";
constexpr std::string_view kOriginTable = "measured";
constexpr std::string_view kOriginKey = "processor";

// What a profile consists of, said once for writing and reading. `Visitor` has table(path), which
// begins a table, field(key, value) for numbers of nanoseconds, numbers of bytes and truth values,
// ratio(key, value) for how many times as much something is, at least once, and mark(key, value)
// for whether figures of the table were measured; `P` is Profile or const Profile.
template <typename Visitor, typename Level>
void visit_memory_level(Visitor& visitor, Level& level) {
    visitor.field("latency_ns", level.latency_ns);
    visitor.field("per_byte_ns", level.per_byte_ns);
    visitor.field("contended_per_byte_ns", level.contended_per_byte_ns);
    visitor.mark("measured", level.measured);
    visitor.mark("contention_measured", level.contention_measured);
}

template <typename Visitor, typename Rates>
void visit_cache(Visitor& visitor, Rates& rates) {
    visitor.field("capacity_bytes", rates.capacity_bytes);
    visitor.field("copy_per_byte_ns", rates.copy_per_byte_ns);
    visitor.field("reduce_operand_per_byte_ns", rates.reduce_operand_per_byte_ns);
    visitor.field("reduce_target_per_byte_ns", rates.reduce_target_per_byte_ns);
    visitor.field("overwrite_per_byte_ns", rates.overwrite_per_byte_ns);
    visitor.field("streaming_per_byte_ns", rates.streaming_per_byte_ns);
    visitor.mark("measured", rates.measured);
}

template <typename Visitor, typename Model>
void visit_memory(Visitor& visitor, Model& memory) {
    // No field in [memory] itself: a file may have one of its tables without the others.
    visitor.table("memory.reduce");
    visitor.field("fixed_ns", memory.reduce_fixed_ns);
    for (std::size_t i = 0; i < memory.levels.size(); ++i) {
        visitor.table(fmt::format("memory.levels.{}", topo::name(static_cast<topo::Distance>(i))));
        visit_memory_level(visitor, memory.levels[i]);
    }
    for (std::size_t i = 0; i < memory.caches.size(); ++i) {
        visitor.table(fmt::format("memory.caches.{}", name(static_cast<Cache>(i))));
        visit_cache(visitor, memory.caches[i]);
    }
    visitor.table("memory.cma");
    visitor.field("permitted", memory.cma.permitted);
    visitor.field("fixed_ns", memory.cma.fixed_ns);
    visitor.field("per_byte_ns", memory.cma.per_byte_ns);
    visitor.field("written_per_byte_ns", memory.cma.written_per_byte_ns);
    visitor.field("bytes_min", memory.cma.bytes_min);
    visitor.mark("measured", memory.cma.measured);
    visitor.table("memory.copies");
    visitor.field("mapped_bytes_min", memory.copies.mapped_bytes_min);
    visitor.field("ring_bytes", memory.copies.ring_bytes);
    visitor.field("crowded_cma_bytes_min", memory.copies.crowded_cma_bytes_min);
    visitor.field("crowded_ring_bytes", memory.copies.crowded_ring_bytes);
    visitor.mark("measured", memory.copies.measured);
    visitor.mark("crowded_measured", memory.copies.crowded_measured);
    visitor.table("memory.far_copies");
    visitor.field("cma_bytes_min", memory.far_copies.cma_bytes_min);
    visitor.mark("measured", memory.far_copies.measured);
    visitor.table("memory.joint_copies");
    visitor.field("bytes_min", memory.joint.bytes_min);
    visitor.mark("measured", memory.joint.measured);
    visitor.table("memory.wake");
    visitor.field("yield_switch_ns", memory.wake.yield_switch_ns);
    visitor.field("futex_core_ns", memory.wake.futex_core_ns);
    visitor.field("futex_across_ns", memory.wake.futex_across_ns);
    visitor.mark("measured", memory.wake.measured);
    visitor.mark("across_measured", memory.wake.across_measured);
}

template <typename Visitor, typename Postal>
void visit_network(Visitor& visitor, const char* table, Postal& network) {
    visitor.table(table);
    visitor.field("alpha_p_ns", network.alpha_p_ns);
    visitor.field("alpha_r_ns", network.alpha_r_ns);
    visitor.field("beta_ns_per_byte", network.beta_ns_per_byte);
    visitor.mark("measured", network.measured);
}

template <typename Visitor, typename P>
void visit(Visitor& visitor, P& profile) {
    visitor.table("compute");
    visitor.field("copy_per_byte_ns", profile.copy_per_byte_ns);
    visitor.field("reduce_per_byte_ns", profile.reduce_per_byte_ns);
    visitor.field("reduce_fixed_ns", profile.reduce_fixed_ns);
    for (std::size_t i = 0; i < profile.levels.size(); ++i) {
        visitor.table(fmt::format("levels.{}", topo::name(static_cast<topo::Distance>(i))));
        auto& level = profile.levels[i];
        visitor.field("latency_ns", level.latency_ns);
        visitor.field("overhead_ns", level.overhead_ns);
        visitor.field("gap_ns", level.gap_ns);
        visitor.field("gap_per_byte_ns", level.gap_per_byte_ns);
        visitor.mark("measured", profile.levels_measured[i]);
    }
    visit_memory(visitor, profile.memory);
    visit_network(visitor, "network.minimum", profile.network.minimum);
    visit_network(visitor, "network.median", profile.network.median);
    visitor.table("network.links");
    visitor.ratio("contention", profile.links.contention);
    visitor.mark("measured", profile.links.measured);
}

class Printer {
  public:
    Printer() {
        print("# UCG cost profile. Times are in nanoseconds.\n\n{} = {}\n", kVersionKey,
              kProfileVersion);
    }

    void table(std::string_view path) { print("\n[{}]\n", path); }
    // The shortest decimal that reads back as the same number, in TOML's syntax for floats.
    void field(std::string_view key, double value) {
        UCG_ASSERT(std::isfinite(value));
        const std::string text = fmt::to_string(value);
        const bool is_float = text.find_first_of(".e") != std::string::npos;
        print("{} = {}{}\n", key, text, is_float ? "" : ".0");
    }
    void ratio(std::string_view key, double value) { field(key, value); }
    void field(std::string_view key, std::uint64_t value) {
        UCG_ASSERT(value <= INT64_MAX);
        print("{} = {}\n", key, value);
    }
    void field(std::string_view key, bool value) { print("{} = {}\n", key, value); }
    void mark(std::string_view key, bool value) { field(key, value); }

    std::string text() const { return fmt::to_string(text_); }

  private:
    template <typename... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    }

    fmt::memory_buffer text_;
};

class Lister {
  public:
    void table(std::string_view path) { table_ = path; }
    void field(std::string_view key, double value) { add(key, value, Unit::nanoseconds); }
    void ratio(std::string_view key, double value) { add(key, value, Unit::times); }
    void field(std::string_view key, std::uint64_t value) {
        add(key, static_cast<double>(value), Unit::bytes);
    }
    void field(std::string_view key, bool value) { add(key, value ? 1 : 0, Unit::truth); }
    void mark(std::string_view /*key*/, bool /*value*/) {}

    std::vector<NamedFigure> take() { return std::move(figures_); }

  private:
    void add(std::string_view key, double value, Unit unit) {
        figures_.push_back({table_, std::string(key), value, unit});
    }

    std::string table_;
    std::vector<NamedFigure> figures_;
};

std::string describe(const toml::node* node) {
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

// The first failure sticks; what is read after it does not count.
class Reader {
  public:
    explicit Reader(const toml::table& root) : root_(root) {
        const auto version = root[kVersionKey].value_exact<std::int64_t>();
        known_.insert(std::string(kVersionKey));
        if (version != static_cast<std::int64_t>(kProfileVersion)) {
            fail(root, root.get(kVersionKey), kVersionKey, fmt::format("{}", kProfileVersion));
        }
    }

    const Status& status() const { return status_; }

    void table(const std::string& path) {
        path_ = path;
        table_ = &root_;
        for (std::size_t begin = 0; begin <= path.size() && table_ != nullptr;) {
            const std::size_t end = std::min(path.find('.', begin), path.size());
            known_.insert(path.substr(0, end));
            const toml::node* node = table_->get(path.substr(begin, end - begin));
            if (node != nullptr && !node->is_table()) {
                fail(*table_, node, path.substr(0, end), "a table");
            }
            table_ = node != nullptr ? node->as_table() : nullptr;
            begin = end + 1;
        }
        // The keys of a table that is missing are known too, but have nowhere to be.
    }

    void field(std::string_view key, double& value) {
        number(key, value, 0, "a number of nanoseconds, not negative");
    }
    void ratio(std::string_view key, double& value) {
        number(key, value, 1, "a number that is at least 1");
    }

    void field(std::string_view key, std::uint64_t& value) {
        if (const toml::node* node = find(key); table_ != nullptr) {
            const auto number = node != nullptr ? node->value_exact<std::int64_t>() : std::nullopt;
            if (!number || *number < 0) {
                fail(*table_, node, path_of(key), "a whole number of bytes, not negative");
                return;
            }
            value = static_cast<std::uint64_t>(*number);
        }
    }

    void field(std::string_view key, bool& value) {
        if (const toml::node* node = find(key); table_ != nullptr) {
            const auto truth = node != nullptr ? node->value_exact<bool>() : std::nullopt;
            if (!truth) {
                fail(*table_, node, path_of(key), "true or false");
                return;
            }
            value = *truth;
        }
    }

    // What a file does not say to have been measured was not.
    void mark(std::string_view key, bool& value) {
        const toml::node* node = find(key);
        if (table_ != nullptr && node == nullptr) {
            value = false;
            return;
        }
        field(key, value);
    }

    void field(std::string_view key, std::string& value) {
        if (const toml::node* node = find(key); table_ != nullptr) {
            const auto text =
                node != nullptr ? node->value_exact<std::string>() : std::optional<std::string>();
            if (!text) {
                fail(*table_, node, path_of(key), "text");
                return;
            }
            value = *text;
        }
    }

    // A key that nobody has asked for is a misspelt one.
    void reject_others() { reject_others(root_, ""); }

  private:
    std::string path_of(std::string_view key) const { return fmt::format("{}.{}", path_, key); }

    void number(std::string_view key, double& value, double least, std::string_view expected) {
        if (const toml::node* node = find(key); table_ != nullptr) {
            const bool is_number = node != nullptr && node->is_number();
            const auto found = is_number ? node->value<double>() : std::nullopt;
            if (!found || !std::isfinite(*found) || *found < least) {
                fail(*table_, node, path_of(key), expected);
                return;
            }
            value = *found;
        }
    }

    const toml::node* find(std::string_view key) {
        known_.insert(path_of(key));
        return table_ != nullptr ? table_->get(key) : nullptr;
    }

    void fail(const toml::table& parent, const toml::node* node, std::string_view path,
              std::string_view expected) {
        const toml::source_region& where = (node != nullptr ? *node : parent).source();
        fail(where, path, fmt::format("expected {}, found {}", expected, describe(node)));
    }

    void fail(const toml::source_region& where, std::string_view path, std::string_view problem) {
        if (status_.ok()) {
            status_ =
                failure(Code::invalid_argument, "line {}: {}: {}", where.begin.line, path, problem);
        }
    }

    // As deep as known tables are: what lies deeper has been rejected with its parent.
    void reject_others(const toml::table& table, const std::string& prefix) {
        for (const auto& [key, node] : table) {
            const std::string path = prefix + std::string(key.str());
            if (known_.find(path) == known_.end()) {
                fail(key.source(), path, "expected only keys of a profile, found this one");
            } else if (const toml::table* child = node.as_table()) {
                reject_others(*child, path + ".");
            }
        }
    }

    const toml::table& root_;
    std::string path_;                   // Of the present table.
    const toml::table* table_ = nullptr; // The present table; null where it is missing.
    std::set<std::string, std::less<>> known_;
    Status status_;
};

std::string read_origin(Reader& reader) {
    std::string processor;
    reader.table(std::string(kOriginTable));
    reader.field(kOriginKey, processor);
    return processor;
}

} // namespace

std::string processor_text(const topo::Processor& processor) {
    return processor.vendor.empty() ? ""
                                    : fmt::format("{} family {} model {}", processor.vendor,
                                                  processor.family, processor.model);
}

std::string origin_toml(std::string_view processor) {
    return processor.empty()
               ? ""
               : fmt::format("\n[{}]\n{} = \"{}\"\n", kOriginTable, kOriginKey, processor);
}

std::string measured_on(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        return "";
    }
    Reader reader(parsed.table());
    return read_origin(reader);
}

std::string to_toml(const Profile& profile) {
    Printer printer;
    visit(printer, profile);
    return printer.text();
}

std::vector<NamedFigure> figures_of(const Profile& profile) {
    Lister lister;
    visit(lister, profile);
    return lister.take();
}

Result<Profile> parse_toml(std::string_view text, const Profile& base) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return failure(Code::invalid_argument, "line {}, column {}: {}", error.source().begin.line,
                       error.source().begin.column, error.description());
    }
    Profile profile = base;
    Reader reader(parsed.table());
    visit(reader, profile);
    read_origin(reader);
    reader.reject_others();
    if (!reader.status().ok()) {
        return reader.status();
    }
    return profile;
}

} // namespace ucg::cost
