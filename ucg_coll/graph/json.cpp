#include "ucg_coll/graph/json.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "ucg_coll/graph/print.hpp"

namespace ucg::graph {

namespace {

using Json = nlohmann::ordered_json;

std::string_view name(Stride stride) {
    switch (stride) {
    case Stride::fixed: return "fixed";
    case Stride::advance: return "advance";
    case Stride::rotate: return "rotate";
    }
    return "?";
}

Json slice_json(const Slice& slice, Rank self) {
    Json json = {
        {"buffer", name(slice.buffer)}, {"offset", slice.offset}, {"length", slice.length}};
    if (slice.owner != self) {
        json["owner"] = slice.owner;
    }
    if (slice.stride != Stride::fixed) {
        json["stride"] = name(slice.stride);
    }
    return json;
}

Json op_json(const Schedule& schedule, std::uint32_t index) {
    const Op& op = schedule.ops[index];
    Json json = {{"kind", name(op.kind)}};
    if (has_peer(op.kind)) {
        json["peer"] = op.peer;
    }
    if (has_source(op.kind)) {
        json["source"] = slice_json(op.source, schedule.rank);
    }
    if (op.kind == OpKind::reduce) {
        Json& operands = json["operands"] = Json::array();
        for (std::uint32_t i = 0; i < op.operand_count; ++i) {
            operands.push_back(slice_json(schedule.operands[op.first_operand + i], schedule.rank));
        }
    }
    if (has_target(op.kind)) {
        json["target"] = slice_json(op.target, schedule.rank);
    }
    const IndexRange range = dependency_range(schedule, index);
    for (std::uint32_t d = range.first; d < range.last; ++d) {
        const Dependency dependency = schedule.dependencies[d];
        Json after = {{"op", static_cast<std::uint32_t>(dependency.op)}};
        if (dependency.distance > 0) {
            after["distance"] = static_cast<std::uint32_t>(dependency.distance);
        }
        json["after"].push_back(std::move(after));
    }
    return json;
}

/// A member of the document, or a missing one, with the path that leads to it. The first mistake is
/// kept in `status`, which all nodes of a document share. Reading a node that is wrong or missing
/// gives a default value.
class Node {
  public:
    Node(const Json* json, std::string path, Status& status)
        : json_(json), path_(std::move(path)), status_(status) {}

    bool exists() const { return json_ != nullptr; }
    std::size_t size() const { return json_ != nullptr && json_->is_array() ? json_->size() : 0; }

    Node operator[](std::string_view member) const {
        const std::string path =
            path_.empty() ? std::string(member) : path_ + "." + std::string(member);
        if (json_ == nullptr || !json_->is_object()) {
            return {nullptr, path, status_};
        }
        const auto at = json_->find(std::string(member));
        return {at == json_->end() ? nullptr : &*at, path, status_};
    }
    Node operator[](std::size_t index) const {
        return {&(*json_)[index], path_ + "[" + std::to_string(index) + "]", status_};
    }

    void fail(std::string_view expected) const {
        if (status_.ok()) {
            status_ = failure(Code::invalid_argument, "{}: expected {}",
                              path_.empty() ? "document" : path_, expected);
        }
    }

    /// Checks that the node is an object with no members but these, so that a misspelt one is
    /// noticed.
    const Node& object(std::initializer_list<std::string_view> members) const {
        if (json_ == nullptr || !json_->is_object()) {
            fail("an object");
            return *this;
        }
        for (const auto& [key, value] : json_->items()) {
            if (std::find(members.begin(), members.end(), key) == members.end()) {
                (*this)[key].fail("no such member");
            }
        }
        return *this;
    }
    const Node& array() const {
        if (json_ == nullptr || !json_->is_array()) {
            fail("an array");
        }
        return *this;
    }

    std::uint64_t number(std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const {
        const bool fits = json_ != nullptr && json_->is_number_unsigned();
        if (!fits || json_->get<std::uint64_t>() > max) {
            fail(fits ? fmt::format("an integer of at most {}", max) : "a non-negative integer");
            return 0;
        }
        return json_->get<std::uint64_t>();
    }
    Rank rank() const {
        if (json_ != nullptr && json_->is_number_integer() && *json_ == kNoRank) {
            return kNoRank;
        }
        return static_cast<Rank>(number(std::numeric_limits<Rank>::max()));
    }
    bool boolean() const {
        if (json_ == nullptr || !json_->is_boolean()) {
            fail("true or false");
            return false;
        }
        return json_->get<bool>();
    }
    std::string string() const {
        if (json_ == nullptr || !json_->is_string()) {
            fail("a string");
            return {};
        }
        return json_->get<std::string>();
    }
    /// Returns the one of `choices` whose name() the node is.
    template <typename T, std::size_t N>
    T choice(const std::array<T, N>& choices) const {
        const std::string text = string();
        std::string names;
        for (const T value : choices) {
            if (name(value) == text) {
                return value;
            }
            names += (names.empty() ? "" : ", ") + std::string(name(value));
        }
        fail("one of " + names);
        return choices[0];
    }

  private:
    const Json* json_;
    std::string path_;
    Status& status_;
};

Slice read_slice(const Node& node, Rank self) {
    node.object({"buffer", "offset", "length", "owner", "stride"});
    Slice slice;
    slice.buffer = node["buffer"].choice(kBufferKinds);
    slice.offset = node["offset"].number();
    slice.length = node["length"].number();
    slice.owner = node["owner"].exists() ? node["owner"].rank() : self;
    slice.stride = node["stride"].exists() ? node["stride"].choice(kStrides) : Stride::fixed;
    return slice;
}

void read_operands(const Node& operands, Op& op, Schedule& schedule) {
    operands.array();
    if (operands.size() > std::numeric_limits<std::uint16_t>::max()) {
        operands.fail("at most 65535 operands");
        return;
    }
    op.first_operand = static_cast<std::uint32_t>(schedule.operands.size());
    op.operand_count = static_cast<std::uint16_t>(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        schedule.operands.push_back(read_slice(operands[i], schedule.rank));
    }
}

void read_op(const Node& node, Schedule& schedule) {
    node.object({"kind", "peer", "source", "operands", "target", "after"});
    Op op;
    op.kind = node["kind"].choice(kOpKinds);
    op.first_dependency = static_cast<std::uint32_t>(schedule.dependencies.size());
    if (has_peer(op.kind)) {
        op.peer = node["peer"].rank();
    }
    if (has_source(op.kind)) {
        op.source = read_slice(node["source"], schedule.rank);
    }
    if (op.kind == OpKind::reduce) {
        read_operands(node["operands"], op, schedule);
    }
    if (has_target(op.kind)) {
        op.target = read_slice(node["target"], schedule.rank);
    }
    const Node after = node["after"];
    if (after.exists()) {
        after.array();
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
        const Node item = after[i];
        item.object({"op", "distance"});
        Dependency dependency;
        dependency.op = item["op"].number(kOpsMax - 1) & (kOpsMax - 1);
        dependency.distance = item["distance"].exists() ? item["distance"].number(15) & 15 : 0;
        schedule.dependencies.push_back(dependency);
    }
    schedule.ops.push_back(op);
}

Repeat read_repeat(const Node& node) {
    node.object({"first_op", "op_count", "iterations", "segment_bytes", "last_bytes", "rotation"});
    constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
    Repeat repeat;
    repeat.first_op = static_cast<std::uint32_t>(node["first_op"].number(kMax));
    repeat.op_count = static_cast<std::uint32_t>(node["op_count"].number(kMax));
    repeat.iterations = node["iterations"].number();
    repeat.segment_bytes = node["segment_bytes"].number();
    repeat.last_bytes = node["last_bytes"].number();
    repeat.rotation = static_cast<std::uint32_t>(node["rotation"].number(kMax));
    return repeat;
}

Schedule read_schedule(const Node& node) {
    node.object({"collective", "algorithm", "rank", "rank_count", "in_place", "exposed",
                 "input_bytes", "output_bytes", "scratch_bytes", "element_bytes",
                 "staging_buffer_bytes", "own_scratch_bytes", "flag_slots", "flag_slot_bytes",
                 "helped", "ops", "repeats"});
    Schedule schedule;
    schedule.collective = node["collective"].choice(kCollectives);
    schedule.algorithm = node["algorithm"].string();
    schedule.rank = node["rank"].rank();
    schedule.rank_count = node["rank_count"].rank();
    schedule.in_place = node["in_place"].boolean();
    schedule.exposed = node["exposed"].boolean();
    schedule.input_bytes = node["input_bytes"].number();
    schedule.output_bytes = node["output_bytes"].number();
    schedule.scratch_bytes = node["scratch_bytes"].number();
    schedule.element_bytes = node["element_bytes"].number();
    schedule.staging_buffer_bytes =
        node["staging_buffer_bytes"].exists() ? node["staging_buffer_bytes"].number() : 0;
    schedule.own_scratch_bytes =
        node["own_scratch_bytes"].exists() ? node["own_scratch_bytes"].number() : 0;
    schedule.flag_slots = node["flag_slots"].exists() && node["flag_slots"].boolean();
    schedule.helped = node["helped"].exists() && node["helped"].boolean();
    const Node flag_slot_bytes = node["flag_slot_bytes"];
    if (flag_slot_bytes.exists() && !schedule.flag_slots) {
        flag_slot_bytes.fail("no such member without flag_slots");
    }
    schedule.flag_slot_bytes = flag_slot_bytes.exists() ? flag_slot_bytes.number() : 0;
    const Node ops = node["ops"].array();
    for (std::size_t i = 0; i < ops.size(); ++i) {
        read_op(ops[i], schedule);
    }
    const Node repeats = node["repeats"];
    if (repeats.exists()) {
        repeats.array();
    }
    for (std::size_t i = 0; i < repeats.size(); ++i) {
        schedule.repeats.push_back(read_repeat(repeats[i]));
    }
    return schedule;
}

} // namespace

std::string to_json(const Schedule& schedule, int indent) {
    Json json = {{"collective", name(schedule.collective)},
                 {"algorithm", schedule.algorithm},
                 {"rank", schedule.rank},
                 {"rank_count", schedule.rank_count},
                 {"in_place", schedule.in_place},
                 {"exposed", schedule.exposed},
                 {"input_bytes", schedule.input_bytes},
                 {"output_bytes", schedule.output_bytes},
                 {"scratch_bytes", schedule.scratch_bytes},
                 {"element_bytes", schedule.element_bytes},
                 {"ops", Json::array()}};
    if (schedule.staging_buffer_bytes > 0) {
        json["staging_buffer_bytes"] = schedule.staging_buffer_bytes;
    }
    if (schedule.own_scratch_bytes > 0) {
        json["own_scratch_bytes"] = schedule.own_scratch_bytes;
    }
    if (schedule.helped) {
        json["helped"] = true;
    }
    if (schedule.flag_slots) {
        json["flag_slots"] = true;
        json["flag_slot_bytes"] = schedule.flag_slot_bytes;
    }
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        json["ops"].push_back(op_json(schedule, i));
    }
    for (const Repeat& repeat : schedule.repeats) {
        json["repeats"].push_back({{"first_op", repeat.first_op},
                                   {"op_count", repeat.op_count},
                                   {"iterations", repeat.iterations},
                                   {"segment_bytes", repeat.segment_bytes},
                                   {"last_bytes", repeat.last_bytes},
                                   {"rotation", repeat.rotation}});
    }
    // Printing must not throw if the algorithm's name is not UTF-8.
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<Schedule> parse_json(std::string_view text) {
    try {
        const Json json = Json::parse(text);
        Status status;
        Schedule schedule = read_schedule(Node(&json, "", status));
        if (!status.ok()) {
            return status;
        }
        return schedule;
    } catch (const Json::exception& error) {
        return failure(Code::invalid_argument, "document: {}", error.what());
    }
}

} // namespace ucg::graph
