#include "bench/pipeline/recorded_stage.hpp"

#include <utility>

#include "troupe/trace/trace.hpp"

namespace troupe::bench {
namespace {

double now_ms() { return 1e-6 * static_cast<double>(trace::now_ns()); }

}  // namespace

/// Records an action from its own construction to its end.
class recorded_stage::timer {
 public:
  timer(const recorded_stage& recorded, std::uint64_t step, action_kind kind, int microbatch)
      : into_(recorded.steps_.at(step)), op_{recorded.stage_, kind, microbatch} {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() { into_.push_back({op_, begin_, now_ms()}); }

 private:
  recorded_step& into_;
  action op_;
  double begin_ = now_ms();
};

recorded_stage::recorded_stage(std::unique_ptr<program::stage_program> recorded, int stage,
                               std::vector<recorded_step>& steps)
    : recorded_(std::move(recorded)), stage_(stage), steps_(steps) {}

std::vector<tensor> recorded_stage::forward(const program::microbatch& which, std::vector<tensor> inputs,
                                            tensor targets) {
  timer timing(*this, which.step, action_kind::forward, which.index);
  return recorded_->forward(which, std::move(inputs), std::move(targets));
}

std::vector<tensor> recorded_stage::backward_input(const program::microbatch& which,
                                                   std::vector<tensor> output_gradients) {
  timer timing(*this, which.step, action_kind::input_gradient, which.index);
  return recorded_->backward_input(which, std::move(output_gradients));
}

void recorded_stage::backward_weight(const program::microbatch& which) {
  timer timing(*this, which.step, action_kind::weight_gradient, which.index);
  recorded_->backward_weight(which);
}

void recorded_stage::apply(std::uint64_t step) {
  timer timing(*this, step, action_kind::apply, 0);
  recorded_->apply(step);
}

}  // namespace troupe::bench
