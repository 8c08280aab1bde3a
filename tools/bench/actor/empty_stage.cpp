#include "bench/actor/empty_stage.hpp"

#include "troupe/trace/trace.hpp"

namespace troupe::bench {

empty_stage::empty_stage(const empty_stage_options& options, std::vector<step_times>& record)
    : options_(options),
      record_(record),
      payload_(tensor::zeros({options.size_bytes}, dtype::u8)),
      state_{{std::to_string(options.stage) + ".state", tensor::zeros({1})}} {}

tensor empty_stage::forward(const microbatch& which, tensor input, tensor) {
  auto& times = record_.at(which.step);
  if (times.begin_ns == 0) times.begin_ns = now_ns();
  if (options_.stage == options_.num_stages - 1) return {};
  return options_.stage == 0 ? payload_ : input;
}

tensor empty_stage::backward_input(const microbatch&, tensor output_gradient) {
  if (options_.stage == 0) return {};
  return output_gradient.defined() ? output_gradient : payload_;
}

void empty_stage::backward_weight(const microbatch& which) { record_.at(which.step).end_ns = now_ns(); }

}  // namespace troupe::bench
