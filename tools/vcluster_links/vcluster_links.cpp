// vcluster_links: carries frames between pairs of network devices with a delay.
#include <charconv>
#include <limits>
#include <unistd.h>

#include "tools/cli.hpp"
#include "tools/vcluster_links/forwarder.hpp"

namespace ucg::tools {

namespace {

constexpr const char* kFooter =
    "A link is a pair of TAP devices that this program makes in its network namespace; whoever\n"
    "starts it brings them up and moves them where they belong. Once they are there it prints\n"
    "\"ready\". Each frame that one device sends is received by the other LATENCY nanoseconds\n"
    "later or, with the probability LOSS, never. Order is kept. At most 16 MiB are under way in\n"
    "each direction; what comes then is dropped and counted.\n"
    "\n"
    "It sleeps until a frame comes or is due and takes realtime priority where it may. How late\n"
    "frames were is counted: connect to the socket for all counters as one line of JSON.\n"
    "\n"
    "It ends, and the devices with it, when standard input ends: start it with a pipe there, and\n"
    "it outlives nobody.\n"
    "\n"
    "Exit status: 0 input ended, 1 failed, 2 wrong usage.\n"
    "\n"
    "Example, two devices with a millisecond between them until the sleep is over:\n"
    "  sleep 60 | vcluster_links --link test,tapa,tapb,1000000,0";

template <typename T>
bool parse_number(std::string_view text, T& value) {
    const std::from_chars_result result =
        std::from_chars(text.data(), text.data() + text.size(), value);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

LinkOptions parse_link(std::string_view text) {
    std::vector<std::string> words(1);
    for (const char letter : text) {
        if (letter == ',') {
            words.emplace_back();
        } else {
            words.back() += letter;
        }
    }
    LinkOptions link;
    // An hour. Nobody waits for longer.
    constexpr std::uint64_t kLatencyMaxNs = 3'600'000'000'000;
    if (words.size() != 5 || !parse_number(words[3], link.latency_ns) ||
        link.latency_ns > kLatencyMaxNs || !parse_number(words[4], link.loss) ||
        !(link.loss >= 0 && link.loss <= 1)) {
        throw CLI::ValidationError(
            "--link", fmt::format("expected NAME,DEVICE,DEVICE,LATENCY,LOSS with nanoseconds and a "
                                  "number from 0 to 1; found {}",
                                  text));
    }
    link.name = words[0];
    link.near = words[1];
    link.far = words[2];
    return link;
}

Status serve(const ForwarderOptions& options) {
    const Result<std::unique_ptr<Forwarder>> forwarder = Forwarder::create(options);
    if (!forwarder.ok()) {
        return forwarder.status();
    }
    if (Status status = write_output("-", "ready\n"); !status.ok()) {
        return status;
    }
    return (*forwarder)->run(STDIN_FILENO);
}

} // namespace
} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Links with latency and loss between network devices of this machine, for "
                 "tools/vcluster.",
                 "vcluster_links");
    ForwarderOptions options;
    app.add_option_function<std::vector<std::string>>(
           "--link",
           [&](const std::vector<std::string>& links) {
               for (const std::string& link : links) {
                   options.links.push_back(parse_link(link));
               }
           },
           "A link's name, its two devices, its latency in nanoseconds and its loss, a "
           "probability from 0 to 1; may be "
           "repeated")
        ->type_name("NAME,DEVICE,DEVICE,LATENCY,LOSS")
        ->required();
    app.add_option("--seed", options.seed, "What is lost depends on it alone (default: 1)")
        ->transform(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
        ->type_name("NUMBER");
    app.add_option("--socket", options.socket, "Tell the counters to whoever connects here")
        ->type_name("PATH");
    app.footer(kFooter);
    return run(app, argc, argv, [&] { return serve(options); });
}
