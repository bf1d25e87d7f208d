// Reads the text form of listed.hpp.
#include <algorithm>
#include <charconv>
#include <unordered_set>

#include <fmt/format.h>

#include "ucg_coll/aapc/listed.hpp"

namespace ucg::aapc {
namespace {

/// Returns whether `text` may be the name of a machine, by the same rules as in topo: a list is for
/// clusters that topo can name.
bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= 255 && text.front() != '-' && text.front() != '.' &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
           });
}

class Parser {
  public:
    explicit Parser(std::string_view text) : rest_(text) {}

    Result<Listed> parse() {
        if (heading("aapc", 1, 1) == 1) {
            read_machines();
            read_phases();
            read_syncs();
        }
        if (good() && next_line()) {
            fail(fmt::format("nothing comes after the synchronisations, found '{}'", shown(line_)));
        }
        return good() ? Result<Listed>(std::move(listed_)) : Result<Listed>(status_);
    }

  private:
    bool good() const { return status_.ok(); }
    void fail(std::string_view what) {
        if (good()) {
            status_ = failure(Code::invalid_argument, "line {}: {}", line_number_, what);
        }
    }
    /// Returns the beginning of `text`, for error messages: files may hold anything.
    static std::string_view shown(std::string_view text) { return text.substr(0, 40); }

    bool take_line() {
        if (rest_.empty()) {
            ++line_number_;
            return false;
        }
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        line_ = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        ++line_number_;
        if (line_.ends_with('\r')) {
            line_.remove_suffix(1);
        }
        return true;
    }
    /// Takes the next line that is no comment; a phase without messages is an empty line.
    bool next_phase() {
        while (take_line()) {
            if (!line_.starts_with('#')) {
                return true;
            }
        }
        return false;
    }
    bool next_line() {
        while (next_phase()) {
            if (!line_.empty()) {
                return true;
            }
        }
        return false;
    }

    /// Consumes a number at the beginning of the line, which has no sign and is at most `most`.
    /// Returns false if there is none.
    bool number(std::uint64_t most, std::uint64_t& value) {
        const char* const begin = line_.data();
        const char* const end = begin + line_.size();
        const bool digit = begin != end && *begin >= '0' && *begin <= '9';
        const auto [stop, error] = std::from_chars(begin, end, value);
        if (!digit || error != std::errc() || value > most) {
            return false;
        }
        line_.remove_prefix(static_cast<std::size_t>(stop - begin));
        return true;
    }

    /// Takes a line "word N" and returns N, which is from `least` to `most`. Fails if there is no
    /// such line; what it returns then means nothing.
    std::uint64_t heading(std::string_view word, std::uint64_t least, std::uint64_t most) {
        if (!good()) {
            return 0;
        }
        if (!next_line()) {
            fail(fmt::format("expected '{} N', found the end of the text", word));
            return 0;
        }
        const std::string_view whole = line_;
        std::uint64_t value = 0;
        bool fits = line_.starts_with(word);
        if (fits) {
            line_.remove_prefix(word.size());
            fits = line_.starts_with(' ');
        }
        if (fits) {
            line_.remove_prefix(1);
            fits = number(most, value) && value >= least && line_.empty();
        }
        if (!fits) {
            fail(fmt::format("expected '{} N' with N from {} to {}, found '{}'", word, least, most,
                             shown(whole)));
        }
        return value;
    }

    void read_machines() {
        const std::uint64_t count = heading("machines", 2, kListedMachinesMax);
        std::unordered_set<std::string_view> known;
        for (std::uint64_t i = 0; i < count && good(); ++i) {
            if (!next_line()) {
                fail(fmt::format("expected the name of machine {} of {}, found the end", i, count));
            } else if (!is_name(line_)) {
                fail(fmt::format("'{}' is no machine's name", shown(line_)));
            } else if (!known.insert(line_).second) {
                fail(fmt::format("machine {} is there twice", line_));
            } else {
                listed_.machines.emplace_back(line_);
            }
        }
    }

    std::uint64_t count() const { return listed_.machines.size(); }
    std::size_t key(PhaseMessage message) const {
        return std::size_t{message.source} * count() + message.target;
    }

    /// Consumes a message, such as "3>5". Fails and returns false if there is none.
    bool read_message(PhaseMessage& message) {
        const std::string_view whole = line_;
        std::uint64_t source = 0;
        std::uint64_t target = 0;
        bool fits = number(count() - 1, source) && line_.starts_with('>');
        if (fits) {
            line_.remove_prefix(1);
            fits = number(count() - 1, target) && source != target;
        }
        if (!fits) {
            fail(fmt::format("expected a message S>T between two of {} machines, found '{}'",
                             count(), shown(whole)));
        }
        message = {static_cast<Position>(source), static_cast<Position>(target)};
        return fits;
    }

    bool separator() {
        const bool blank = line_.starts_with(' ');
        if (blank) {
            line_.remove_prefix(1);
        } else {
            fail(fmt::format("expected a blank between messages, found '{}'", shown(line_)));
        }
        return blank;
    }

    void read_phases() {
        const std::uint64_t messages = count() * (count() - 1);
        listed_.phase_count = heading("phases", 1, std::max<std::uint64_t>(messages, 1));
        if (!good()) {
            return;
        }
        phase_of_.assign(count() * count(), kUnknown);
        sent_in_.assign(count(), kUnknown);
        received_in_.assign(count(), kUnknown);
        for (std::uint64_t phase = 0; phase < listed_.phase_count && good(); ++phase) {
            if (!next_phase()) {
                fail(fmt::format("expected phase {} of {}, found the end of the text", phase,
                                 listed_.phase_count));
            }
            read_phase(phase);
        }
        if (good() && listed_.messages.size() != messages) {
            const auto missing = [&] {
                PhaseMessage message{0, 1};
                while (phase_of_[key(message)] != kUnknown) {
                    message = message.target + 1 < count()
                                  ? PhaseMessage{message.source, message.target + 1}
                                  : PhaseMessage{message.source + 1, 0};
                    message.target += message.source == message.target ? 1 : 0;
                }
                return message;
            }();
            fail(fmt::format("{} of {} messages are in a phase: {}>{} is not",
                             listed_.messages.size(), messages, missing.source, missing.target));
        }
    }

    void read_phase(std::uint64_t phase) {
        PhaseMessage message;
        for (bool first = true; good() && !line_.empty(); first = false) {
            if ((first || separator()) && read_message(message)) {
                add(phase, message);
            }
        }
    }

    void add(std::uint64_t phase, PhaseMessage message) {
        std::uint64_t& known = phase_of_[key(message)];
        if (known != kUnknown) {
            fail(fmt::format("message {}>{} is in phase {} already", message.source, message.target,
                             known));
        } else if (sent_in_[message.source] == phase) {
            fail(fmt::format("machine {} sends twice in phase {}", message.source, phase));
        } else if (received_in_[message.target] == phase) {
            fail(fmt::format("machine {} receives twice in phase {}", message.target, phase));
        } else {
            known = sent_in_[message.source] = received_in_[message.target] = phase;
            listed_.messages.push_back({phase, message});
        }
    }

    void read_syncs() {
        // There is at most one for each pair of messages.
        const std::uint64_t most = listed_.messages.size() * listed_.messages.size();
        const std::uint64_t syncs = heading("syncs", 0, most);
        for (std::uint64_t i = 0; i < syncs && good(); ++i) {
            if (!next_line()) {
                fail(fmt::format("expected synchronisation {} of {}, found the end of the text", i,
                                 syncs));
                return;
            }
            read_sync();
        }
    }

    void read_sync() {
        PhaseMessage earlier;
        PhaseMessage later;
        if (!read_message(earlier) || !separator() || !read_message(later)) {
            return;
        }
        const Sync sync{{phase_of_[key(earlier)], earlier}, {phase_of_[key(later)], later}};
        if (!line_.empty()) {
            fail(fmt::format("expected the end of the line, found '{}'", shown(line_)));
        } else if (sync.earlier.phase >= sync.later.phase) {
            fail(fmt::format("{}>{} of phase {} cannot wait for {}>{} of phase {}", later.source,
                             later.target, sync.later.phase, earlier.source, earlier.target,
                             sync.earlier.phase));
        } else if (earlier.source == later.source) {
            fail(fmt::format("machine {} sends its messages one after another anyway",
                             earlier.source));
        } else {
            listed_.syncs.push_back(sync);
        }
    }

    static constexpr std::uint64_t kUnknown = UINT64_MAX;

    std::string_view rest_; // The lines after the present one.
    std::string_view line_; // What is left of the present line.
    std::uint64_t line_number_ = 0;
    Status status_;
    Listed listed_;
    std::vector<std::uint64_t> phase_of_;    // By key().
    std::vector<std::uint64_t> sent_in_;     // By machine: the last phase in which it sends,
    std::vector<std::uint64_t> received_in_; // and receives.
};

} // namespace

Result<Listed> parse_listed(std::string_view text) {
    return Parser(text).parse();
}

} // namespace ucg::aapc
