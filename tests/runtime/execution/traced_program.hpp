#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "troupe/program/batch_source.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::testing {

/// A stage of a lane whose every result depends on all that went into it and on their order. Numbers stay
/// below 4096, so that f32 adds them exactly. Throws std::logic_error when it is not called as stage_program
/// says.
class traced_program : public program::stage_program {
 public:
  traced_program(const plan& running, int stage, int lane = 0);

  /// What it adds up with other lanes in a pass, where they run that together.
  tensor part_of_forward(const program::microbatch& which, const std::vector<tensor>& inputs,
                         const tensor& targets) const;
  tensor part_of_backward(const program::microbatch& which,
                          const std::vector<tensor>& output_gradients) const;
  tensor part_of_weights(const program::microbatch& which) const;

  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor> inputs,
                              tensor targets) override;
  std::vector<tensor> backward_input(const program::microbatch& which,
                                     std::vector<tensor> output_gradients) override;
  void backward_weight(const program::microbatch& which) override;
  tensor partial_for_reduction(int reduction) override;
  void reduce(int reduction, const std::vector<tensor>& partials) override;
  /// The second bucket depends on the sums of the first.
  int num_buckets(layout::mesh_axis axis, std::uint64_t) override {
    return axis == layout::mesh_axis::dp ? 2 : 1;
  }
  tensor bucket(layout::mesh_axis axis, int number) override;
  void take_sums(layout::mesh_axis axis, int number, const std::vector<tensor>& parts) override;
  /// Where the plan has Us over replicas: one of each replica, and one that no step changes.
  std::vector<weight_bucket> weight_buckets() override;
  tensor weights_in(int bucket) override;
  void take_weights(int bucket, const tensor& weights) override;
  /// Where the plan ends with an S of the stage, it has whole weights between U and S alone.
  bool keeps_weights() override { return keeps_weights_; }
  void attach_weights() override;
  void release_weights() override;
  /// Its forwards wait for one bucket after the other.
  bool defer_gather(const std::vector<int>& missing,
                    const std::function<void(bool waits)>& progress) override;
  void end_gather() override;
  std::string non_finite() override { return non_finite_text; }
  void apply(std::uint64_t step) override;
  void discard() override {}
  program::step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return {}; }
  std::vector<named_tensor> parameters() override { return {}; }
  void load_state(const std::vector<named_tensor>&) override {}

  /// Of all that the stage has computed, in an order that the schedule does not choose.
  std::uint64_t result() const;
  std::string non_finite_text;

 private:
  std::uint64_t value_of_forward(const program::microbatch& which, const std::vector<tensor>& inputs,
                                 const tensor& targets) const;
  std::uint64_t value_of_backward(const program::microbatch& which,
                                  const std::vector<tensor>& output_gradients) const;
  void expect_weights() const;

  schedule::stage_graph graph_;
  int stage_, slice_, replica_;
  int num_owners_ = 0;  ///< replicas that own weights of the stage; 0: none
  bool averages_;
  bool keeps_weights_ = true, has_weights_ = false;
  std::map<std::pair<std::uint64_t, int>, std::uint64_t> outputs_, gradients_;  // [step, microbatch]
  std::map<int, std::uint64_t> saved_;                                          // [microbatch] gradients
  std::vector<std::uint64_t> weights_ = {1};                                    // [optimizer steps]
  std::set<int> missing_;                     ///< buckets that a forward is to wait for
  std::function<void(bool waits)> progress_;  ///< null: no gather is deferred
  std::map<int, std::uint64_t> taken_;  ///< by bucket of others: the number of steps that made the weights
  std::uint64_t sum_ = 0;
  std::vector<std::uint64_t> sums_;  // of buckets that were taken, since the last G
};

/// Two rows a microbatch of all replicas that share a batch, that depend on its number.
batch traced_samples(const plan& running, std::uint64_t number);

/// What the stages of all lanes that run a plan compute in so many steps, without a plan: microbatch after
/// microbatch, stage after stage. Steps are runs of the plan. [num_running_lanes * num_stages] result()
std::vector<std::uint64_t> expected_results(const plan& running, bool training, std::uint64_t num_steps);

}  // namespace troupe::testing
