#include "troupe/program/stage_program.hpp"

#include <stdexcept>
#include <string>
#include <string_view>
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

int stage_parameters::num_buckets(layout::mesh_axis /*axis*/, std::uint64_t /*step*/) { return 1; }

namespace {

[[noreturn]] void refuse_sums(std::string_view function, layout::mesh_axis axis) {
  bool over_replicas = axis == layout::mesh_axis::dp;
  throw std::logic_error("[stage_program::" + std::string(function) +
                         "] expected a program that has it, for a plan with a G over " +
                         std::string(to_string(axis)) +
                         ", got one without: implement bucket and take_sums, or use one " +
                         (over_replicas ? "replica" : "slice"));
}

}  // namespace

tensor stage_parameters::bucket(layout::mesh_axis axis, int /*number*/) { refuse_sums("bucket", axis); }

void stage_parameters::take_sums(layout::mesh_axis axis, int /*number*/,
                                 const std::vector<tensor>& /*parts*/) {
  refuse_sums("take_sums", axis);
}

std::optional<int> stage_parameters::owner_of(layout::mesh_axis /*axis*/, int /*number*/) { return {}; }

void stage_parameters::note_read(layout::mesh_axis /*axis*/, int /*number*/) {}

std::vector<stage_parameters::weight_bucket> stage_parameters::weight_buckets() { return {}; }

tensor stage_parameters::weights_in(int bucket) {
  throw std::logic_error("[stage_program::weights_in] expected a program whose replicas own weights, got " +
                         std::string("one without, asked for bucket ") + std::to_string(bucket));
}

void stage_parameters::take_weights(int bucket, const tensor& /*weights*/) { weights_in(bucket); }

std::vector<tensor_contents> stage_state::contents() { return whole_contents(state()); }

}  // namespace troupe::program
