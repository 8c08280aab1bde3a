#include "troupe/ops/cross_entropy.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/math/exponential.hpp"
#include "troupe/ops/arguments.hpp"

namespace troupe {
namespace {

constexpr const char* operation = "cross_entropy";

std::int64_t label_at(const tensor& labels, std::int64_t sample, std::int64_t num_classes) {
  auto at = static_cast<std::size_t>(sample);
  auto label = labels.type() == dtype::u8 ? std::int64_t{labels.values<std::uint8_t>()[at]}
                                          : labels.values<std::int64_t>()[at];
  if (label < 0 || label >= num_classes)
    throw_invalid(operation, "labels in [0, " + std::to_string(num_classes) + ")",
                  std::to_string(label) + " at sample " + std::to_string(sample));
  return label;
}

void require_arguments(const tensor& logits, const tensor& labels) {
  require_rank(operation, "logits", logits, dtype::f32, 2);
  if (logits.extents()[1] < 1) throw_invalid(operation, "logits of at least one class", describe(logits));
  auto type = labels.defined() && labels.type() == dtype::u8 ? dtype::u8 : dtype::i64;
  require_argument(operation, "labels", labels, type, {logits.extents()[0]});
}

std::span<const float> row_of(const tensor& logits, std::int64_t sample) {
  auto size = static_cast<std::size_t>(logits.extents()[1]);
  return logits.values<float>().subspan(static_cast<std::size_t>(sample) * size, size);
}

/// The sum of exp(z_j - largest); largest is the row's maximum, so the sum is at least 1.
double sum_of_exponentials(std::span<const float> row, double largest) {
  double sum = 0;
  for (auto score : row) sum += exponential(double{score} - largest);
  return sum;
}

}  // namespace

cross_entropy_result cross_entropy_forward(const tensor& logits, const tensor& labels) {
  require_arguments(logits, labels);
  cross_entropy_result result;
  for (std::int64_t sample = 0; sample < logits.extents()[0]; ++sample) {
    auto row = row_of(logits, sample);
    auto label = label_at(labels, sample, logits.extents()[1]);
    auto best = std::ranges::max_element(row);
    double largest = *best;
    auto loss =
        logarithm(sum_of_exponentials(row, largest)) - (row[static_cast<std::size_t>(label)] - largest);
    result.loss_sum += loss;
    result.num_correct += best - row.begin() == label;
  }
  return result;
}

tensor cross_entropy_backward(const tensor& logits, const tensor& labels, double scale) {
  require_arguments(logits, labels);
  auto gradient = tensor::empty(logits.extents());
  auto* out = gradient.values<float>().data();
  for (std::int64_t sample = 0; sample < logits.extents()[0]; ++sample) {
    auto row = row_of(logits, sample);
    auto label = label_at(labels, sample, logits.extents()[1]);
    double largest = *std::ranges::max_element(row);
    auto sum = sum_of_exponentials(row, largest);
    for (std::int64_t j = 0; j < logits.extents()[1]; ++j) {
      auto probability = exponential(double{row[static_cast<std::size_t>(j)]} - largest) / sum;
      *out++ = static_cast<float>(scale * (probability - (j == label ? 1 : 0)));
    }
  }
  return gradient;
}

}  // namespace troupe
