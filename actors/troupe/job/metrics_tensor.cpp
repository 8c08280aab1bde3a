#include "troupe/job/metrics_tensor.hpp"

#include <bit>

namespace troupe {
namespace {

/// Different from all parameters' names, which begin with the number of a layer.
constexpr auto name = "troupe.step_metrics";

}  // namespace

named_tensor metrics_tensor(const step_metrics& metrics) {
  std::vector<std::int64_t> numbers{std::bit_cast<std::int64_t>(metrics.loss_sum), metrics.num_samples,
                                    metrics.num_correct};
  return {name, tensor::from(numbers, {3})};
}

tensor_contents metrics_contents() { return whole_contents(metrics_tensor({})); }

std::optional<step_metrics> extract_metrics(std::vector<named_tensor>& state) {
  if (state.empty() || state.back().name != name) return {};
  auto note = state.back().value;
  state.pop_back();
  auto numbers = note.values<std::int64_t>();
  if (numbers.size() != 3) return {};
  return step_metrics{std::bit_cast<double>(numbers[0]), numbers[1], numbers[2]};
}

}  // namespace troupe
