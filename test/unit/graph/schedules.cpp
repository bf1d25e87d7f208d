#include "test/unit/graph/schedules.hpp"

#include <algorithm>
#include <random>

#include "test/support/catch.hpp"

namespace ucg::graph::test {

namespace {

std::string trim(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(' ');
    return begin == std::string_view::npos ? "" : std::string(line.substr(begin));
}

Schedule parse(const std::string& text) {
    Result<Schedule> schedule = parse_text(text);
    INFO(text);
    INFO(schedule.status().message());
    REQUIRE(schedule.ok());
    return *schedule;
}

bool all_share(Rank, Rank, const void*) {
    return true;
}

} // namespace

Request request(Collective collective, Rank rank_count, std::uint64_t bytes, Rank root) {
    Request request;
    request.collective = collective;
    request.rank_count = rank_count;
    request.bytes = bytes;
    request.root = root;
    return request;
}

std::vector<Schedule> programs(const std::vector<Request>& requests, std::string_view bodies) {
    std::vector<Schedule> schedules;
    std::string text;
    std::size_t op = 0;
    const auto finish = [&] {
        if (!text.empty()) {
            schedules.push_back(parse(text));
        }
    };
    while (!bodies.empty()) {
        const std::size_t end = bodies.find('\n');
        const std::string line = trim(bodies.substr(0, end));
        bodies.remove_prefix(end == std::string_view::npos ? bodies.size() : end + 1);
        if (line.rfind("rank", 0) == 0) {
            finish();
            const auto rank = static_cast<Rank>(schedules.size());
            const Request& request =
                requests[requests.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
            const BufferSizes sizes = buffer_sizes(request, rank);
            const std::size_t rest = std::min({line.find(" own_scratch"), line.find(" flag_slot"),
                                               line.find(" helped"), line.size()});
            const std::string scratch = rest > 4 ? line.substr(5, rest - 5) : "scratch 0";
            text = fmt::format(
                "schedule {} by_hand rank {} of {} input {} output {} {} element {}{}{}\n",
                name(request.collective), rank, request.rank_count, sizes.input, sizes.output,
                scratch, request.element_bytes, request.in_place ? " in_place" : "",
                line.substr(rest));
            op = 0;
        } else if (line.rfind("repeat", 0) == 0) {
            text += line + '\n';
        } else if (!line.empty()) {
            text += fmt::format("{}: {}\n", op++, line);
        }
    }
    finish();
    return schedules;
}

std::string verdict(const std::vector<Request>& requests, std::string_view bodies,
                    bool shared_memory) {
    std::vector<Schedule> schedules = programs(requests, bodies);
    for (Schedule& schedule : schedules) {
        schedule.exposed = shared_memory;
    }
    return std::string(
        verify(schedules, requests, shared_memory ? all_share : nullptr, nullptr).message());
}

std::string verdict(const Request& request, std::string_view bodies, bool shared_memory) {
    return verdict(std::vector<Request>{request}, bodies, shared_memory);
}

Schedule random_schedule(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    Schedule schedule;
    schedule.collective = kCollectives[below(kCollectives.size())];
    schedule.algorithm = below(4) == 0 ? "odd \"name\"\\ \x01 of it" : "ring.v2-fast";
    schedule.rank_count = static_cast<Rank>(1 + below(9));
    schedule.rank = static_cast<Rank>(below(static_cast<std::uint64_t>(schedule.rank_count)));
    schedule.in_place = below(2) == 0;
    schedule.exposed = below(2) == 0;
    schedule.helped = below(2) == 0;
    schedule.staging_buffer_bytes = below(2) * 4096;
    schedule.flag_slots = below(2) == 0;
    schedule.flag_slot_bytes = schedule.flag_slots ? below(1000) : 0;
    schedule.input_bytes = below(1000);
    schedule.output_bytes = std::uint64_t{random()} << 20;
    schedule.scratch_bytes = below(1000);
    schedule.own_scratch_bytes = below(2) * below(1000);
    schedule.element_bytes = 1 + below(16);
    const auto slice = [&] {
        Slice s;
        s.offset = std::uint64_t{random()} << below(20);
        s.length = below(100000);
        s.owner = below(3) == 0 ? static_cast<Rank>(below(9)) : schedule.rank;
        s.buffer = kBufferKinds[below(kBufferKinds.size())];
        s.stride = static_cast<Stride>(below(3));
        return s;
    };
    const std::uint64_t count = below(20);
    for (std::uint32_t i = 0; i < count; ++i) {
        Op op;
        op.kind = static_cast<OpKind>(below(8));
        op.first_dependency = static_cast<std::uint32_t>(schedule.dependencies.size());
        if (has_peer(op.kind)) {
            op.peer = static_cast<Rank>(below(9));
        }
        if (has_source(op.kind)) {
            op.source = slice();
        }
        if (has_target(op.kind)) {
            op.target = slice();
        }
        if (op.kind == OpKind::share) {
            op.target = {0, op.source.length, schedule.rank, BufferKind::flag_slot, Stride::fixed};
        }
        if (op.kind == OpKind::reduce) {
            op.first_operand = static_cast<std::uint32_t>(schedule.operands.size());
            op.operand_count = static_cast<std::uint16_t>(2 + below(4));
            for (int k = 0; k < op.operand_count; ++k) {
                schedule.operands.push_back(slice());
            }
        }
        for (std::uint64_t d = below(4); d > 0 && i > 0; --d) {
            Dependency dependency;
            dependency.op = below(i) & 0xffff;
            dependency.distance = below(3) == 0 ? below(16) & 15 : 0;
            schedule.dependencies.push_back(dependency);
        }
        schedule.ops.push_back(op);
    }
    if (count > 4) {
        schedule.repeats.push_back({1, 2, 2 + below(100), 65536, 1 + below(65536), 3});
        schedule.repeats.push_back({3, 1, 1000000000000ULL, 8, 8, 1});
    }
    return schedule;
}

} // namespace ucg::graph::test
