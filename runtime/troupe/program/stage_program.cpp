#include "troupe/program/stage_program.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::program {

step_metrics& step_metrics::operator+=(const step_metrics& other) {
  loss_sum += other.loss_sum;
  num_samples += other.num_samples;
  num_correct += other.num_correct;
  return *this;
}

double step_metrics::mean_loss() const {
  return num_samples == 0 ? 0 : loss_sum / static_cast<double>(num_samples);
}

double step_metrics::accuracy() const {
  return num_samples == 0 ? 0 : static_cast<double>(num_correct) / static_cast<double>(num_samples);
}

tensor stage_parameters::partial_for_reduction(int reduction) {
  throw std::logic_error(
      "[stage_program::partial_for_reduction] expected a program that takes part in reduction " +
      std::to_string(reduction) + " of the plan, got one that takes part in none");
}

void stage_parameters::reduce(int reduction, const std::vector<tensor>& /*shares*/) {
  partial_for_reduction(reduction);
}

void stage_compute::backward_last_weight(const microbatch& which, const bucket_callback& /*on_bucket*/) {
  backward_weight(which);
}

void stage_compute::backward_last(const microbatch& which, std::vector<tensor> output_gradients,
                                  const inputs_callback& on_inputs, const bucket_callback& on_bucket) {
  on_inputs(backward_input(which, std::move(output_gradients)));
  backward_last_weight(which, on_bucket);
}

int stage_parameters::num_gradient_buckets(std::uint64_t /*step*/) { return 1; }

tensor stage_parameters::replica_gradients(int /*bucket*/) {
  throw std::logic_error(
      "[stage_program::replica_gradients] expected a program that has it, for a job with several replicas, "
      "got "
      "one without: implement replica_gradients and take_summed_gradients, or use one replica");
}

void stage_parameters::take_summed_gradients(int /*bucket*/, const std::vector<tensor>& /*parts*/) {
  throw std::logic_error(
      "[stage_program::take_summed_gradients] expected a program that has it, for a job with several "
      "replicas, "
      "got one without: implement it, or use one replica");
}

namespace {

[[noreturn]] void refuse_common_gradients() {
  throw std::logic_error(
      "[stage_program::common_gradients] expected a program that has it, for a stage of which the plan has a "
      "G "
      "over tp, got one without: implement num_common_buckets, common_gradients and "
      "take_summed_common_gradients, or leave that G out");
}

}  // namespace

int stage_parameters::num_common_buckets() { refuse_common_gradients(); }
tensor stage_parameters::common_gradients(int /*bucket*/) { refuse_common_gradients(); }
void stage_parameters::take_summed_common_gradients(int /*bucket*/, const std::vector<tensor>& /*parts*/) {
  refuse_common_gradients();
}

}  // namespace troupe::program
