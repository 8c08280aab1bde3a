#include "troupe/pipeline/detail/first_pass_checks.hpp"

#include <cmath>
#include <set>

#include "troupe/autograd/detail/graph_node.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe::detail {
namespace {

/// The results of a loss that are compared.
struct loss_outcome {
  double value = 0, sum = 0;
  double gradient = 0;  ///< the magnitudes of its elements, added up
  std::int64_t num_counted = 0;
};

double sum_of_magnitudes(const tensor& value) {
  auto elements = cast(value, dtype::f32).to(device());
  double sum = 0;
  for (auto element : elements.values<float>()) sum += std::abs(double{element});
  return sum;
}

loss_outcome outcome_of(const nn::Loss& loss, const tensor& output, const tensor& targets,
                        double gradient_scale) {
  auto from = leaf(output);
  auto result = loss(from, targets, gradient_scale);
  if (!result.loss.value.defined() || result.loss.value.num_elements() != 1)
    throw bad_input("the loss: expected a scalar as loss_result::loss, got " + describe(result.loss.value));
  require_recorded(result);
  if (result.num_correct < 0 || result.num_correct > targets.num_elements())
    throw bad_input("the loss: expected num_correct of at most " + std::to_string(targets.num_elements()) +
                    " targets, got " + std::to_string(result.num_correct));
  result.loss.backward();
  return {sum_of_magnitudes(result.loss.value), result.loss_sum, sum_of_magnitudes(from.gradient()),
          result.num_counted};
}

/// Whether 2 * half == whole within the precision of 16-bit dtypes.
bool is_twice(double whole, double half) {
  constexpr double tolerance = 0.05;
  return !std::isfinite(whole) || !std::isfinite(half) ||
         std::abs(whole - 2 * half) <= tolerance * std::abs(whole);
}

}  // namespace

void require_recorded(const loss_result& result) {
  if (!result.loss.requires_gradient())
    throw bad_input(
        "the loss: expected a loss_result::loss that is computed from the model's output, got a constant: "
        "nothing could be learned from it");
}

void check_parameters(const variable& output, const std::vector<std::shared_ptr<nn::Module>>& layers) {
  if (!output.node) return;
  std::set<const parameter*> named;
  for (const auto& layer : layers)
    for (const auto* each : layer->parameters()) named.insert(each);
  for (const auto& node : reachable_nodes(output.node)) {
    if (node->is_leaf()) continue;
    for (const auto* used : node->recorded->parameters())
      if (!named.contains(used))
        throw bad_input(
            "the model's forward pass uses the parameter " + used->name + to_string(used->extents) +
            ", which no module names, so that it would not be trained or saved: name it in "
            "each_parameter of its module, and that module in each_child of the one that holds it");
  }
}

std::int64_t check_loss(const nn::Loss& loss, const tensor& output, const tensor& targets) {
  auto whole = outcome_of(loss, output, targets, 1), half = outcome_of(loss, output, targets, 0.5);
  if (!is_twice(whole.value, half.value) || !is_twice(whole.gradient, half.gradient))
    throw bad_input(
        "the loss: expected loss_result::loss and its gradient to scale with gradient_scale, got a value "
        "of " +
        std::to_string(whole.value) + " and gradients of " + std::to_string(whole.gradient) + " at 1, but " +
        std::to_string(half.value) + " and " + std::to_string(half.gradient) +
        " at 0.5: multiply the summed loss by gradient_scale");
  if (whole.sum == 0 && whole.value != 0)
    throw bad_input(
        "the loss: expected loss_result::loss_sum, the sum of the samples' losses, got 0 beside a "
        "loss of " +
        std::to_string(whole.value) + ": fill it in, the job's metrics come from it");
  if (std::isfinite(whole.sum) && std::abs(whole.sum - half.sum) > 1e-6 * std::abs(whole.sum))
    throw bad_input(
        "the loss: expected a loss_result::loss_sum that does not depend on gradient_scale, got " +
        std::to_string(whole.sum) + " at 1 and " + std::to_string(half.sum) + " at 0.5");
  if (!loss.tells_num_counted() && whole.num_counted < 1)
    throw bad_input(
        "the loss: expected loss_result::num_counted, what the mean is taken over, of at least 1, got " +
        std::to_string(whole.num_counted) + " for targets " + describe(targets) +
        ": fill it in. Where it depends on the targets, and may be 0, give the job "
        "nn::Loss(function, num_counted), with a function that returns it for targets");
  return whole.num_counted;
}

void check_equal_counts(const nn::Loss& loss, const tensor& output, const tensor& targets,
                        const tensor& batch_targets) {
  if (loss.tells_num_counted() || !batch_targets.defined()) return;
  auto count_of = [&](const tensor& counted) { return loss({output, nullptr}, counted, 1).num_counted; };
  auto expected = count_of(targets.to(output.device()));
  auto rows = targets.shape()[0];
  for (std::int64_t first = 0; first < batch_targets.shape()[0]; first += rows) {
    auto others = batch_targets.rows(first, rows);
    if (auto counted = count_of(others.to(output.device())); counted != expected)
      throw bad_input("the loss: expected loss_result::num_counted of " + std::to_string(expected) +
                      " in each microbatch of all replicas, got " + std::to_string(counted) + " of samples " +
                      std::to_string(first) + " to " + std::to_string(first + rows - 1) +
                      " of the batch: " + advice_on_counts);
  }
}

}  // namespace troupe::detail
