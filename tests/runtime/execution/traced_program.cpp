#include "runtime/execution/traced_program.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

namespace troupe::testing {
namespace {

std::uint64_t mixed(std::uint64_t value, std::uint64_t with) {
  value = (value ^ (with + 0x9E3779B97F4A7C15u + (value << 6) + (value >> 2))) * 0xBF58476D1CE4E5B9u;
  return value ^ (value >> 29);
}

tensor small_number(std::uint64_t value) { return tensor::full({1}, static_cast<float>(value % 4096)); }

std::uint64_t number_in(const tensor& value) {
  if (!value.defined()) throw std::logic_error("[traced_program] expected a tensor");
  std::uint64_t all = 0;
  for (auto each : value.values<float>()) all = mixed(all, static_cast<std::uint64_t>(each));
  return all;
}

/// Mixes in the sums over other lanes, of those that run the pass together.
std::uint64_t with_sums(const program::microbatch& which, std::uint64_t value) {
  auto all = value;
  for (auto* sums : {which.sums, which.slice_sums}) {
    if (!sums) continue;
    auto part = small_number(value);
    sums->all_reduce(part);
    all = mixed(all, number_in(part));
  }
  return all;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("[traced_program] expected " + what);
}

}  // namespace

traced_program::traced_program(const plan& running, int stage, int lane)
    : graph_(running.num_stages, running.edges),
      stage_(stage),
      slice_(running.mesh.slice_of(lane)),
      replica_(running.mesh.replica_of(lane)),
      averages_(schedule::averages_weights(running)) {
  const auto& list =
      running.devices[static_cast<std::size_t>(running.device_of_stage[static_cast<std::size_t>(stage)])];
  bool is_sharded = std::ranges::count(list, action{stage, action_kind::unshard, 0}) > 0;
  if (is_sharded && running.num_running_replicas() == running.mesh.num_replicas)
    num_owners_ = running.mesh.num_replicas;
  for (const auto& op : list)
    if (num_owners_ > 0 && op.stage == stage && is_of_storage(op.kind))
      keeps_weights_ = op.kind == action_kind::unshard;
}

std::vector<program::stage_program::weight_bucket> traced_program::weight_buckets() {
  std::vector<weight_bucket> buckets;
  for (int owner = 0; owner < num_owners_; ++owner) buckets.push_back({owner});
  if (num_owners_ > 0) buckets.push_back({0, false});
  return buckets;
}

/// The bucket, and how many steps its replica has made.
tensor traced_program::weights_in(int bucket) {
  expect(bucket == replica_ || (bucket == num_owners_ && replica_ == 0), "a bucket of its own");
  return tensor::from(std::vector<float>{static_cast<float>(bucket), static_cast<float>(weights_.size() - 1)},
                      {2});
}

void traced_program::take_weights(int bucket, const tensor& weights) {
  auto values = weights.values<float>();
  expect(values[0] == static_cast<float>(bucket) && bucket != replica_, "weights of another replica");
  bool is_new = taken_.insert_or_assign(bucket, static_cast<std::uint64_t>(values[1])).second;
  expect(bucket < num_owners_ || is_new, "what no step changes once");
  missing_.erase(bucket);
}

void traced_program::attach_weights() {
  if (keeps_weights_) return;
  expect(!std::exchange(has_weights_, true), "memory for weights after it was released");
}

void traced_program::release_weights() {
  expect(!keeps_weights_ && has_weights_, "a release of weights that are there");
  expect(missing_.empty() && !progress_, "no gather under way when weights are released");
  has_weights_ = false;
  taken_.clear();
}

/// Of all replicas, the newest.
void traced_program::expect_weights() const {
  if (num_owners_ == 0) return;
  expect(keeps_weights_ || has_weights_, "memory for weights");
  for (int owner = 0; owner < num_owners_; ++owner)
    expect(owner == replica_ || (taken_.contains(owner) && taken_.at(owner) == weights_.size() - 1),
           "the newest weights of all replicas");
  expect(replica_ == 0 || taken_.contains(num_owners_), "what no step changes");
}

bool traced_program::defer_gather(const std::vector<int>& missing,
                                  const std::function<void(bool waits)>& progress) {
  if (std::ranges::find(missing, num_owners_) != missing.end()) return false;
  missing_ = {missing.begin(), missing.end()};
  progress_ = progress;
  return true;
}

void traced_program::end_gather() {
  expect(missing_.empty() && progress_, "the end of a gather that is deferred, when all has come");
  progress_ = nullptr;
}

std::uint64_t traced_program::value_of_forward(const program::microbatch& which,
                                               const std::vector<tensor>& inputs,
                                               const tensor& targets) const {
  auto version = which.training ? which.step - static_cast<std::uint64_t>(which.delay) : weights_.size() - 1;
  expect(version < weights_.size() && version + 2 >= weights_.size(), "the newest weights, or those before");
  auto value = mixed(mixed(which.step, static_cast<std::uint64_t>(which.index)), weights_[version]);
  value = mixed(value, static_cast<std::uint64_t>(slice_));
  for (const auto& each : inputs) value = mixed(value, number_in(each));
  return targets.defined() ? mixed(value, number_in(targets)) : value;
}

std::uint64_t traced_program::value_of_backward(const program::microbatch& which,
                                                const std::vector<tensor>& output_gradients) const {
  auto value = outputs_.at({which.step, which.index});
  for (const auto& each : output_gradients) value = mixed(value, number_in(each));
  return value;
}

tensor traced_program::part_of_forward(const program::microbatch& which, const std::vector<tensor>& inputs,
                                       const tensor& targets) const {
  return small_number(value_of_forward(which, inputs, targets));
}
tensor traced_program::part_of_backward(const program::microbatch& which,
                                        const std::vector<tensor>& output_gradients) const {
  return small_number(value_of_backward(which, output_gradients));
}
tensor traced_program::part_of_weights(const program::microbatch& which) const {
  return small_number(saved_.at(which.index));
}

std::vector<tensor> traced_program::forward(const program::microbatch& which, std::vector<tensor> inputs,
                                            tensor targets) {
  while (!missing_.empty()) {
    auto go_on = progress_;  // it may end within
    go_on(true);
  }
  expect_weights();
  auto num_inputs = graph_.takes_samples(stage_) ? 1 : graph_.inputs_of(stage_).size();
  expect(inputs.size() == num_inputs, "an input for each port");
  expect(!targets.defined() || graph_.computes_loss(stage_), "targets at the loss only");
  auto value = with_sums(which, value_of_forward(which, inputs, targets));
  expect(outputs_.emplace(std::pair(which.step, which.index), value).second, "one forward");
  std::vector<tensor> outputs;
  for (int port = 0; port < graph_.num_output_ports(stage_); ++port)
    outputs.push_back(small_number(mixed(value, static_cast<std::uint64_t>(port))));
  if (graph_.computes_loss(stage_) && !targets.defined()) outputs.push_back(small_number(value));
  return outputs;
}

std::vector<tensor> traced_program::backward_input(const program::microbatch& which,
                                                   std::vector<tensor> output_gradients) {
  expect_weights();
  auto num_ports = static_cast<std::size_t>(graph_.num_output_ports(stage_));
  expect(output_gradients.size() == num_ports, "a gradient for each output port");
  auto value = with_sums(which, value_of_backward(which, output_gradients));
  expect(gradients_.emplace(std::pair(which.step, which.index), value).second, "one backward");
  saved_[which.index] = value;
  std::vector<tensor> gradients;
  for (std::size_t port = 0; port < graph_.inputs_of(stage_).size(); ++port)
    gradients.push_back(small_number(mixed(value, port)));
  return gradients;
}

void traced_program::backward_weight(const program::microbatch& which) {
  sum_ = mixed(sum_, with_sums(which, saved_.at(which.index)));
  saved_.erase(which.index);
}

tensor traced_program::bucket(layout::mesh_axis axis, int number) {
  expect(saved_.empty(), "all weight gradients before the sums over lanes");
  if (axis == layout::mesh_axis::tp) return small_number(mixed(sum_, 77));
  if (number == 1 && sums_.empty()) return {};
  auto value = mixed(averages_ ? weights_.back() : sum_, number == 0 ? 0 : sums_.front());
  auto elements = tensor::empty({3});
  for (auto& each : elements.values<float>()) each = small_number(value = mixed(value, 1)).values<float>()[0];
  return elements;
}

void traced_program::take_sums(layout::mesh_axis axis, int number, const std::vector<tensor>& parts) {
  if (axis == layout::mesh_axis::tp) {
    for (const auto& each : parts) sum_ = mixed(sum_, number_in(each));
    return;
  }
  expect(static_cast<std::size_t>(number) == sums_.size(),
         "buckets in order, where one depends on the other");
  auto& taken = sums_.emplace_back(0);
  for (const auto& part : parts)
    for (auto each : part.values<float>()) taken = mixed(taken, static_cast<std::uint64_t>(each));
  if (number == 0) return;
  for (auto each : std::exchange(sums_, {}))
    (averages_ ? weights_.back() : sum_) = mixed(averages_ ? weights_.back() : sum_, each);
}

tensor traced_program::partial_for_reduction(int reduction) {
  expect(saved_.empty(), "all weight gradients before a partial for a reduction");
  return small_number(mixed(sum_, static_cast<std::uint64_t>(reduction)));
}

void traced_program::reduce(int reduction, const std::vector<tensor>& partials) {
  sum_ = mixed(sum_, static_cast<std::uint64_t>(reduction));
  for (const auto& each : partials) sum_ = mixed(sum_, number_in(each));
}

void traced_program::apply(std::uint64_t step) {
  expect(step + 1 == weights_.size() && saved_.empty(), "each step once, after its gradients");
  weights_.push_back(mixed(weights_.back(), sum_));
  sum_ = 0;
}

std::uint64_t traced_program::result() const {
  auto value = mixed(weights_.back(), weights_.size() - 1);
  for (const auto& [which, output] : outputs_) value = mixed(value, output);
  for (const auto& [which, gradient] : gradients_) value = mixed(value, gradient);
  return value;
}

batch traced_samples(const plan& running, std::uint64_t number) {
  bool shares_batch = running.kind != schedule_kind::forward_only;
  std::int64_t rows = 2 * running.num_microbatches * (shares_batch ? running.mesh.num_replicas : 1);
  batch made{tensor::empty({rows, 1}), tensor::empty({rows})};
  for (auto& each : made.inputs.values<float>()) each = static_cast<float>(++number * 37 % 101);
  for (auto& each : made.targets.values<float>()) each = static_cast<float>(++number * 53 % 103);
  return made;
}

}  // namespace troupe::testing
