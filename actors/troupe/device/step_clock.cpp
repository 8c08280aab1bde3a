#include "troupe/device/step_clock.hpp"

#include <algorithm>

namespace troupe {
namespace {

trace_kind kind_of(action_kind kind) {
  switch (kind) {
    case action_kind::forward:
      return trace_kind::forward;
    case action_kind::backward:
      return trace_kind::backward;
    case action_kind::input_gradient:
      return trace_kind::input_gradient;
    case action_kind::weight_gradient:
      return trace_kind::weight_gradient;
    case action_kind::reduce_gradient:
      return trace_kind::reduce_gradient;
    case action_kind::apply:
      return trace_kind::apply;
  }
  return trace_kind::forward;
}

}  // namespace

void step_clock::begin_step() {
  first_begin_ns_ = last_end_ns_ = busy_ns_ = 0;
  peak_ = 0;
  saved_.clear();
  actions_.clear();
}

void step_clock::add(const action& op, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t generation,
                     std::uint64_t step) {
  if (first_begin_ns_ == 0) first_begin_ns_ = begin_ns;
  last_end_ns_ = end_ns;
  busy_ns_ += end_ns - begin_ns;
  actions_.push_back({device_, static_cast<std::uint32_t>(op.stage),
                      static_cast<std::uint32_t>(op.microbatch), op.kind, begin_ns, end_ns});
  ring_->record({begin_ns, end_ns, generation, step, op.stage, op.microbatch, kind_of(op.kind)});
}

void step_clock::record(trace_kind kind, std::int64_t begin_ns, std::uint64_t generation, std::uint64_t step,
                        int stage) {
  ring_->record({begin_ns, now_ns(), generation, step, stage, -1, kind});
}

void step_clock::saved(int stage) { peak_ = std::max(peak_, ++saved_[stage]); }

}  // namespace troupe
