#include "perf/perftest/test_options.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/perftest/collectives/collective_data.hpp"
#include "tools/cli.hpp"

namespace ucg::perftest {

namespace {

constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 40;

using Texts = std::vector<std::string>;

/// Adds options to an App for a request, and notes which options were given.
class Adder {
  public:
    Adder(CLI::App& app, TestRequest& request) : app_(app), request_(request) {}

    void group(const char* name) { group_ = name; }

    /// `take` gets the text; the parser reports what it throws.
    CLI::Option* text(const std::string& flags, const char* type, const std::string& help,
                      std::function<void(const std::string&)> take) {
        const std::string shown = flags.substr(0, flags.find(','));
        return app_
            .add_option_function<std::string>(
                flags,
                [&request = request_, shown, take = std::move(take)](const std::string& given) {
                    request.given.insert(shown);
                    take(given);
                },
                help)
            ->type_name(type)
            ->group(group_);
    }

    template <typename T>
    void number(const std::string& flags, T& value, std::uint64_t least, std::uint64_t most,
                const std::string& help) {
        text(flags, "N", fmt::format("{} (default: {})", help, value),
             [&value](const std::string& given) { value = static_cast<T>(std::stoull(given)); })
            ->transform(tools::whole_number(least, most));
    }

    void flag(const std::string& flags, bool& value, const std::string& help) {
        const std::string shown = flags.substr(0, flags.find(','));
        app_.add_flag_callback(
                flags,
                [&request = request_, shown, &value] {
                    request.given.insert(shown);
                    value = true;
                },
                help)
            ->group(group_);
    }

    /// `take` gets one of `choices`.
    void choice(const std::string& flags, const Texts& choices, const std::string& help,
                const std::function<void(const std::string&)>& take) {
        const std::string option = flags.substr(0, flags.find(','));
        text(flags, "NAME", fmt::format("{}: {}", help, fmt::join(choices, ", ")),
             [=](const std::string& given) {
                 if (std::ranges::find(choices, given) == choices.end()) {
                     throw CLI::ValidationError(option,
                                                fmt::format("expected one of {}; found {}",
                                                            fmt::join(choices, ", "), given));
                 }
                 take(given);
             });
    }

  private:
    CLI::App& app_;
    TestRequest& request_;
    const char* group_ = "Tests";
};

[[noreturn]] void refuse(const char* option, const std::string& why) {
    throw CLI::ValidationError(option, why);
}

/// Parses a list of sizes such as "16,48,8192".
std::vector<std::size_t> sizes_of(const std::string& text) {
    std::vector<std::size_t> sizes;
    for (std::string word : split(text, ',')) {
        const std::string wrong = tools::size_in_bytes(0, kSizeMax)(word);
        if (!wrong.empty()) {
            refuse("--size", wrong);
        }
        sizes.push_back(std::stoull(word));
    }
    return sizes;
}

void set_layout(Parameters& parameters, const std::string& text) {
    static const Texts kUct = {"short", "shortiov", "bcopy", "zcopy"};
    static const Texts kUcp = {"contig", "iov"};
    if (const auto found = std::ranges::find(kUct, text); found != kUct.end()) {
        parameters.uct_layout = static_cast<UctLayout>(found - kUct.begin());
        return;
    }
    const Texts words = split(text, ',');
    std::vector<UcpLayout> layouts;
    for (const std::string& word : words) {
        if (const auto found = std::ranges::find(kUcp, word); found != kUcp.end()) {
            layouts.push_back(static_cast<UcpLayout>(found - kUcp.begin()));
        }
    }
    if (layouts.size() != words.size() || words.size() > 2) {
        refuse("-D", fmt::format("expected short, shortiov, bcopy or zcopy (UCT), or contig or "
                                 "iov, of the receiver too behind a comma (UCP); found {}",
                                 text));
    }
    parameters.send_layout = layouts.front();
    if (layouts.size() == 2) {
        parameters.receive_layout = layouts.back();
    }
}

void add_common(Adder& add, Parameters& parameters, TestRequest& request) {
    add.text("-t,--test", "NAME", "The test; they are listed below", [&](const std::string& text) {
        if (find_test(text) == nullptr) {
            refuse("-t", fmt::format("there is no test {}; --help lists them", text));
        }
        parameters.test = text;
    });
    add.text("-s,--size", "BYTES,...",
             "Size of the message; several: its pieces, a scatter-gather list (default: 8)",
             [&](const std::string& text) {
                 parameters.sizes = sizes_of(text);
                 request.sweep.clear();
             });
    add.text("--sizes", "BYTES,...",
             "Sizes of one test after another, \"8,4k,1M\"; \"8:1M\": from 8 to 1M, doubling",
             [&](const std::string& text) {
                 const Result<std::vector<std::size_t>> sweep = parse_sweep(text);
                 if (!sweep.ok()) {
                     refuse("--sizes", std::string(sweep.status().message()));
                 }
                 request.sweep = *sweep;
             });
    add.text("-n,--iterations", "N",
             "Iterations; 0: without end, of a collective as long as --time says (default: "
             "1000000, of collectives 0)",
             [&](const std::string& text) {
                 parameters.iterations = std::stoull(text);
                 parameters.collective.fits_seconds = parameters.iterations == 0;
             })
        ->transform(tools::whole_number(0, std::uint64_t{1} << 62));
    add.number("-w,--warmup", parameters.warmup, 0, std::uint64_t{1} << 62,
               "Iterations before, no longer than 100 ms");
    add.text(
           "-R,--percentile", "NUMBER",
           fmt::format("Which percentile stands in the table (default: {})", parameters.percentile),
           [&](const std::string& text) { parameters.percentile = std::stod(text); })
        ->transform(tools::real_number(0, 100));
    add.text("-m,--memory", "NAME",
             "Memory of sender and receiver: host (devices' memory cannot be used here)",
             [](const std::string& text) {
                 const Texts words = split(text, ',');
                 for (const std::string& word : words) {
                     if (word != "host" || words.size() > 2) {
                         refuse("-m", fmt::format("expected host or host,host; memory of type {} "
                                                  "is not offered",
                                                  text));
                     }
                 }
             });
    add.flag("--check", parameters.check, "Compare results with what they must be, before");
}

void add_primitive(Adder& add, Parameters& parameters) {
    add.group("UCT and UCP");
    add.number("-O,--outstanding", parameters.outstanding, 0, 1U << 20,
               "Sends that may be incomplete; 0: as many as suit the test");
    add.text("-i,--stride", "SIZE",
             "Distance between the pieces of a message; 0: none (default: 0)",
             [&](const std::string& text) { parameters.stride = std::stoull(text); })
        ->transform(tools::size_in_bytes(0, kSizeMax));
    add.flag("-l,--loopback", parameters.loopback, "One process, which talks to itself");
    add.flag("-o,--idle-responder", parameters.one_sided_idle,
             "The target of a one-sided test makes no progress");
    add.flag("-B,--nonblocking-registration", parameters.nonblocking_registration,
             "Register memory without waiting for its pages");
    add.text(
        "-D,--layout", "NAME",
        "UCT: short, shortiov, bcopy or zcopy (default: short). UCP: contig or iov, \"iov,iov\""
        " for the receiver too (default: contig)",
        [&](const std::string& text) { set_layout(parameters, text); });
    add.text("-H,--header", "N",
             "Header of an active message: UCT's is part of the size (default: 8), UCP's is not "
             "(default: 0)",
             [&](const std::string& text) {
                 parameters.uct_header = std::stoull(text);
                 parameters.ucp_header = parameters.uct_header;
             })
        ->transform(tools::whole_number(0, 1U << 20));
}

void add_uct(Adder& add, Parameters& parameters) {
    add.group("UCT");
    add.text("-d,--device", "NAME", "Device, as ucx_info -d has it",
             [&](const std::string& text) { parameters.device = text; });
    add.text("-x,--transport", "NAME", "Transport",
             [&](const std::string& text) { parameters.transport = text; });
    add.number("-W,--window", parameters.window, 1, 127, "Active messages that may be under way");
    add.choice("-A,--async", {"thread", "thread_spinlock"},
               "Asynchronous progress; thread_mutex and signal are not offered",
               [](const std::string& /*text*/) {});
}

void add_ucp(Adder& add, Parameters& parameters, OptionsOf where) {
    add.group("UCP (UCX_TLS and UCX_NET_DEVICES choose transports and devices)");
    add.text("-T,--threads", "N", "Threads of a process: 1; more are not offered",
             [](const std::string& text) {
                 if (text != "1") {
                     refuse("--threads", fmt::format("expected 1, since a test runs in one thread; "
                                                     "found {}",
                                                     text));
                 }
             });
    add.choice("-M,--thread-mode", {"single"},
               "Threads that may progress; serialized and multi are not offered",
               [](const std::string& /*text*/) {});
    add.flag("-C,--wildcard", parameters.wildcard_tag, "Receive any tag");
    add.flag("-U,--unexpected", parameters.unexpected,
             "Receive only after a probe has found the message");
    add.choice("-r,--receive-mode", {"recv", "recv_data"}, "How stream tests receive",
               [&](const std::string& text) { parameters.stream_recv_data = text == "recv_data"; });
    add.flag("-e,--error-handling", parameters.error_handling,
             "Endpoints that tell of a lost peer");
    add.choice("-E,--wait", {"poll", "sleep"}, "How to wait",
               [&](const std::string& text) { parameters.sleeps = text == "sleep"; });
    add.flag("-z,--memory-handle", parameters.memory_handle,
             "Pass the handle of registered memory with each call");
    if (where == OptionsOf::batch_line) {
        add.flag("-I,--wakeup", parameters.wakeup, "A context that can sleep");
    }
}

template <typename Enumeration>
Texts names_up_to(Enumeration first, Enumeration end) {
    Texts names;
    for (int value = first; value < end; ++value) {
        names.emplace_back(name(static_cast<Enumeration>(value)));
    }
    return names;
}

void add_collective(Adder& add, CollectiveParameters& collective) {
    add.group("Collectives");
    add.text("--collective-algorithm", "NAME",
             "Force an algorithm of those that ucg_info -f lists for UCG_<COLLECTIVE>; refused "
             "where it cannot serve",
             [&](const std::string& text) { collective.algorithm = text; });
    add.choice("--buffers", {"ordinary", "heap"},
               "Of malloc(), or of ucg_mem_alloc(), which peers read in place",
               [&](const std::string& text) { collective.heap = text == "heap"; });
    add.choice("--op", names_up_to(UCG_OP_SUM, UCG_OP_USER), "Operator (default: sum)",
               [&](const std::string& text) { collective.operation = text; });
    add.choice("--datatype", names_up_to(UCG_DT_INT8, UCG_DT_INT16_INT32),
               "Datatype (default: float64)",
               [&](const std::string& text) { collective.datatype = text; });
    add.flag("--in-place", collective.in_place,
             "What a rank sends is where its result will be, as with MPI_IN_PLACE");
    add.number("--root", collective.root, 0, tools::kRanksMax, "Root of a rooted collective");
    add.choice("--mode", {"sep", "b2b"},
               "sep: a barrier that is not timed lies before each call, so that all begin together "
               "(default); b2b: back to back, so that ranks may run ahead",
               [&](const std::string& text) {
                   collective.mode =
                       text == "b2b" ? CollectiveMode::back_to_back : CollectiveMode::separated;
               });
    add.text("--time", "SECONDS",
             fmt::format("How long to measure one size, without -n; 0.001 to 3600 (default: {})",
                         collective.seconds),
             [&](const std::string& text) { collective.seconds = std::stod(text); })
        ->transform(tools::real_number(0.001, 3600));
}

} // namespace

void add_test_options(CLI::App& app, TestRequest& request, OptionsOf where) {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    Adder add(app, request);
    add_common(add, request.parameters, request);
    add_primitive(add, request.parameters);
    add_uct(add, request.parameters);
    add_ucp(add, request.parameters, where);
    add_collective(add, request.parameters.collective);
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    for (;;) {
        const std::size_t end = text.find(separator);
        pieces.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return pieces;
        }
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string> words_of(std::string_view line) {
    constexpr std::string_view kBlanks = " \t\r\n";
    std::vector<std::string> words;
    for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
         at = line.find_first_not_of(kBlanks, at)) {
        const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
        words.emplace_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

Result<std::vector<std::size_t>> parse_sweep(const std::string& text) {
    std::vector<std::size_t> sizes;
    for (const std::string& piece : split(text, ',')) {
        std::vector<std::size_t> ends;
        for (std::string word : split(piece, ':')) {
            const std::string wrong = tools::size_in_bytes(0, kSizeMax)(word);
            if (!wrong.empty()) {
                return Status(Code::invalid_argument, wrong);
            }
            ends.push_back(std::stoull(word));
        }
        if (ends.size() > 2 || (ends.size() == 2 && (ends[0] == 0 || ends[0] > ends[1]))) {
            return failure(Code::invalid_argument,
                           "expected a size, or a range such as 8:1M that rises from 1 or more; "
                           "found '{}'",
                           piece);
        }
        for (std::size_t bytes = ends.front(); bytes <= ends.back(); bytes *= 2) {
            sizes.push_back(bytes);
            if (bytes == 0) {
                break;
            }
        }
    }
    return sizes;
}

} // namespace ucg::perftest
