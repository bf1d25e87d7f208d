#include "ucg_coll/plan/parts/message_times.hpp"

#include <algorithm>

namespace ucg::plan {

double MessageTimes::message_ns(std::uint64_t bytes, Source source, Sender sender) const {
    if (!messages_.copied_once(bytes)) {
        return messages_.message_ns(bytes);
    }
    // The sender sends an RTS, the receiver copies the message, alone or together with the sender,
    // and sends a FIN.
    const bool by_both = sender == Sender::waits && messages_.copied_by_both(bytes);
    return messages_.rts_fin_ns() + (by_both ? messages_.price(bytes, source).half_ns
                                             : messages_.single_copy_ns(bytes, source));
}

double MessageTimes::gap_ns(std::uint64_t bytes) const {
    if (messages_.copied_once(bytes)) {
        return messages_.single_copy_ns(bytes, Source::settled);
    }
    // Other ranks may use the way between two messages, but the processor has work at each.
    const cost::LogGp& model = messages_.model();
    const double way_ns = model.gap_ns + static_cast<double>(bytes) * model.gap_per_byte_ns;
    if (!has_processor_ || messages_.across_hosts()) {
        return std::max(model.overhead_ns - model.gap_ns, 0.0) + way_ns;
    }
    const price::MessagePrice price = messages_.price(bytes, Source::settled);
    return std::max(way_ns, price.terms.issue_ns + std::max(price.fill_ns, price.drain_ns));
}

double MessageTimes::relay_gap_ns(std::uint64_t bytes, Source source) const {
    if (messages_.copied_once(bytes)) { // A FIN goes, and one comes.
        return messages_.single_copy_ns(bytes, source) + 2 * messages_.end_ns();
    }
    // On a host the rank copies what it takes and what it sends.
    return messages_.passing_ns(bytes) +
           static_cast<double>(bytes) * messages_.in_exchanges().model().gap_per_byte_ns;
}

double MessageTimes::not_hidden_ns(double work_ns, std::uint64_t bytes) const {
    // On a host processors bring every byte, so that they have nothing to do but for the latency.
    const cost::MessageTerms terms = messages_.terms(messages_.copied_once(bytes) ? 0 : bytes);
    const double idle_ns = terms.flight_ns + (messages_.across_hosts() ? terms.inject_ns : 0);
    return std::max(0.0, work_ns - idle_ns);
}

double MessageWork::message_ns(const price::DistancePrices& messages, std::uint64_t bytes,
                               Source source) const {
    const double ends_ns = 2 * messages.end_ns();
    if (messages.copied_once(bytes)) {
        return 2 * ends_ns + messages.single_copy_ns(bytes, source, rates);
    }
    // Between hosts the gap is that of the wire, on which no processor works; the kernels copy.
    const double copies_per_byte_ns = 2 * rates.copy_per_byte_ns;
    const double per_byte_ns = messages.across_hosts()
                                   ? copies_per_byte_ns
                                   : std::max(messages.model().gap_per_byte_ns, copies_per_byte_ns);
    return ends_ns + static_cast<double>(bytes) * per_byte_ns;
}

} // namespace ucg::plan
