#include "topo/cluster_json.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "topo/cluster_draft.hpp"
#include "topo/rate_text.hpp"

namespace ucg::topo {

using Kind = ClusterNode::Kind;

namespace {

using Json = nlohmann::json;

/// Reads characters and counts lines. The JSON library reads at most one character ahead, after a
/// number. A line ends after its newline, so that the newline itself still counts as part of its
/// line.
class CountingIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, std::uint64_t* line) : at_(at), line_(line) {}

    reference operator*() const { return *at_; }
    CountingIterator& operator++() {
        *line_ += after_newline_ ? 1 : 0;
        after_newline_ = *at_ == '\n';
        ++at_;
        return *this;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

  private:
    const char* at_;
    std::uint64_t* line_;
    bool after_newline_ = false;
};

/// Handles the document's events one after another (SAX), so that deep nesting does no harm, a
/// member that comes twice is noticed, and each error has its line.
class Reader : public nlohmann::json_sax<Json> {
  public:
    explicit Reader(const std::uint64_t& line) : line_(line) {}

    Result<std::vector<DraftNode>> result() {
        if (!status_.ok()) {
            return status_;
        }
        return std::move(drafts_);
    }

    bool null() override { return unexpected("null"); }
    bool boolean(bool /*value*/) override { return unexpected("a boolean"); }
    bool number_integer(number_integer_t /*value*/) override {
        return unexpected("a negative number");
    }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
        return unexpected("a fraction");
    }
    bool binary(binary_t& /*value*/) override { return unexpected("binary data"); }

    bool number_unsigned(number_unsigned_t value) override {
        if (where_ != Where::node || key_ != "bytes_per_second") {
            return unexpected("a number");
        }
        if (value < kRateMin || value > kRateMax) {
            return refuse(fmt::format("a rate of {} bytes per second: expected {} to {}", value,
                                      kRateMin, kRateMax));
        }
        drafts_.back().rate = value;
        return true;
    }

    bool string(string_t& value) override {
        if (where_ != Where::node || key_ == "bytes_per_second") {
            return unexpected("a string");
        }
        DraftNode& draft = drafts_.back();
        if (key_ == "kind") {
            if (value != "switch" && value != "machine") {
                return refuse(
                    fmt::format("kind '{}': expected switch or machine", value.substr(0, 60)));
            }
            draft.kind = value == "switch" ? Kind::network_switch : Kind::machine;
            return true;
        }
        if (value.empty()) {
            return refuse(fmt::format("'{}' is empty", key_));
        }
        (key_ == "name" ? draft.name : draft.parent) = value;
        return true;
    }

    bool start_object(std::size_t /*count*/) override {
        if (where_ == Where::outside) {
            where_ = Where::document;
        } else if (where_ == Where::nodes) {
            where_ = Where::node;
            if (drafts_.size() > kClusterNodesMax) {
                return refuse(fmt::format("more than {} nodes", kClusterNodesMax));
            }
            drafts_.emplace_back().line = line_;
        } else {
            return unexpected("an object");
        }
        seen_.clear();
        return true;
    }

    bool key(string_t& value) override {
        static const std::vector<std::string_view> kOfDocument = {"nodes"};
        static const std::vector<std::string_view> kOfNode = {"name", "kind", "parent",
                                                              "bytes_per_second"};
        const auto& known = where_ == Where::document ? kOfDocument : kOfNode;
        if (std::find(known.begin(), known.end(), value) == known.end()) {
            return refuse(fmt::format("unknown member '{}' ({} known)", value.substr(0, 60),
                                      where_ == Where::document
                                          ? "nodes is"
                                          : "name, kind, parent and bytes_per_second are"));
        }
        if (std::find(seen_.begin(), seen_.end(), value) != seen_.end()) {
            return refuse(fmt::format("member '{}' appears twice", value));
        }
        seen_.push_back(value);
        key_ = value;
        return true;
    }

    bool end_object() override {
        const auto needs = [&](const char* member) {
            return std::find(seen_.begin(), seen_.end(), member) == seen_.end() &&
                   !refuse(fmt::format("member '{}' is missing", member));
        };
        if (where_ == Where::node) {
            where_ = Where::nodes;
            return !needs("name") && !needs("kind");
        }
        where_ = Where::outside;
        return !needs("nodes");
    }

    bool start_array(std::size_t /*count*/) override {
        if (where_ != Where::document) {
            return unexpected("an array");
        }
        where_ = Where::nodes;
        return true;
    }

    bool end_array() override {
        where_ = Where::document;
        seen_ = {"nodes"};
        return true;
    }

    bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                     const Json::exception& error) override {
        const std::string_view text = error.what();
        const std::size_t colon = text.find(": "); // After the kind of error and the position.
        return refuse(colon == std::string_view::npos ? text : text.substr(colon + 2));
    }

  private:
    enum class Where { outside, document, nodes, node };

    bool refuse(std::string_view reason) {
        if (status_.ok()) {
            status_ = failure(Code::invalid_argument, "line {}: {}", line_, reason);
        }
        return false;
    }

    bool unexpected(std::string_view found) {
        switch (where_) {
        case Where::outside: return refuse(fmt::format("expected an object, found {}", found));
        case Where::document:
            return refuse(fmt::format("'nodes': expected an array, found {}", found));
        case Where::nodes:
            return refuse(
                fmt::format("'nodes': expected an object for each node, found {}", found));
        case Where::node:
            return refuse(fmt::format(
                "'{}': expected {}, found {}", key_,
                key_ == "bytes_per_second" ? "a positive whole number" : "a string", found));
        }
        return false;
    }

    const std::uint64_t& line_;
    Where where_ = Where::outside;
    std::string key_;
    std::vector<std::string> seen_; // Members of the current object so far.
    std::vector<DraftNode> drafts_;
    Status status_;
};

} // namespace

Result<Cluster> parse_cluster_json(std::string_view text, Trees trees) {
    std::uint64_t line = 1;
    Reader reader(line);
    Json::sax_parse(CountingIterator(text.data(), &line),
                    CountingIterator(text.data() + text.size(), &line), &reader);
    Result<std::vector<DraftNode>> drafts = reader.result();
    return drafts.ok() ? build_cluster(std::move(*drafts), trees) : drafts.status();
}

std::string to_json_text(const Cluster& cluster) {
    UCG_ASSERT(!cluster.is_forest());
    std::string text = "{\"nodes\": [\n";
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
        const ClusterNode& node = cluster.node(i);
        // Names need no escapes: is_cluster_name().
        text += fmt::format(R"(  {{"name": "{}", "kind": "{}")", node.name, name(node.kind));
        if (node.parent != kNoNode) {
            text += fmt::format(R"(, "parent": "{}")", cluster.node(node.parent).name);
        }
        text += node.rate == 0 ? "" : fmt::format(R"(, "bytes_per_second": {})", node.rate);
        text += i + 1 == cluster.node_count() ? "}\n" : "},\n";
    }
    return text + "]}\n";
}

} // namespace ucg::topo
