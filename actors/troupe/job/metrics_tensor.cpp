#include "troupe/job/metrics_tensor.hpp"

#include <bit>
#include <cstddef>

namespace troupe::actors::job {
namespace {

/// Different from all parameters' names, which begin with the number of a layer.
constexpr auto name = "troupe.step_metrics";
constexpr auto name_of_replicas = "troupe.replica_metrics";
constexpr std::int64_t numbers_each = 3;

void append(std::vector<std::int64_t>& numbers, const program::step_metrics& metrics) {
  numbers.insert(numbers.end(),
                 {std::bit_cast<std::int64_t>(metrics.loss_sum), metrics.num_samples, metrics.num_correct});
}

}  // namespace

named_tensor metrics_tensor(const program::step_metrics& metrics) {
  std::vector<std::int64_t> numbers;
  append(numbers, metrics);
  return {name, tensor::from(numbers, {numbers_each})};
}

named_tensor replica_metrics_tensor(const std::vector<program::step_metrics>& of_replicas) {
  std::vector<std::int64_t> numbers;
  for (const auto& metrics : of_replicas) append(numbers, metrics);
  return {name_of_replicas,
          tensor::from(numbers, {static_cast<std::int64_t>(of_replicas.size()), numbers_each})};
}

tensor_contents metrics_contents() { return whole_contents(metrics_tensor({})); }

tensor_contents replica_metrics_contents(int num_replicas) {
  return whole_contents(
      replica_metrics_tensor(std::vector<program::step_metrics>(static_cast<std::size_t>(num_replicas))));
}

std::map<std::int32_t, program::step_metrics> extract_metrics(std::vector<named_tensor>& state,
                                                              std::int32_t replica) {
  if (state.empty() || (state.back().name != name && state.back().name != name_of_replicas)) return {};
  auto found = state.back();
  state.pop_back();
  auto numbers = found.value.values<std::int64_t>();
  bool is_of_all = found.name == name_of_replicas;
  if (numbers.size() % numbers_each != 0 || (!is_of_all && numbers.size() != numbers_each)) return {};
  std::map<std::int32_t, program::step_metrics> metrics;
  for (std::size_t at = 0; at < numbers.size(); at += numbers_each)
    metrics[is_of_all ? static_cast<std::int32_t>(at / numbers_each) : replica] = {
        std::bit_cast<double>(numbers[at]), numbers[at + 1], numbers[at + 2]};
  return metrics;
}

}  // namespace troupe::actors::job
