// Internal to ucg_coll/graph: how slices and ops look in text, pictures and error messages.
#pragma once

#include <array>
#include <string>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// All kinds of ops, for the readers of the text forms.
inline constexpr std::array kOpKinds = {OpKind::send,    OpKind::recv,   OpKind::copy,
                                        OpKind::reduce,  OpKind::signal, OpKind::await,
                                        OpKind::publish, OpKind::share};

/// Returns the text of a slice in a schedule of rank `self`: "scratch[0:8]" for bytes 0 to 7 of its
/// own scratch, "output@3[0:8]" for rank 3's output. A stride adds "+" (advance) or "%" (rotate).
std::string slice_text(const Slice& slice, Rank self);

/// Returns the text of one op without its number and dependencies: "send to 1 input[0:8]".
std::string op_text(const Schedule& schedule, const Op& op);

} // namespace ucg::graph
