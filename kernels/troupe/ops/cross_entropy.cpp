#include "troupe/ops/cross_entropy.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

constexpr const char* operation = "cross_entropy";

bool is_label(dtype type) { return type == dtype::i64 || type == dtype::i32 || type == dtype::u8; }

void require_arguments(const tensor& logits, const tensor& labels, const cross_entropy_options& options) {
  require_nonempty_rows(operation, "logits", logits);
  auto samples = shape_of_rows(logits);
  if (!labels.defined() || !is_label(labels.dtype()) || labels.shape() != samples)
    throw_invalid(operation, "labels i64, i32 or u8 " + to_string(samples), describe(labels));
  require_on(operation, "labels", labels, logits.device());
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw_invalid(operation, "label_smoothing in [0, 1)", std::to_string(options.label_smoothing));
}

template <class T>
std::int64_t num_other_than(std::int64_t ignored, const tensor& labels) {
  return std::ranges::count_if(labels.values<T>(),
                               [ignored](T each) { return std::int64_t{each} != ignored; });
}

}  // namespace

cross_entropy_result cross_entropy_forward(const tensor& logits, const tensor& labels,
                                           const cross_entropy_options& options) {
  require_arguments(logits, labels, options);
  cross_entropy_result result;
  result.log_sum_exp = tensor::empty(labels.shape(), dtype::f32, logits.device());
  result.device_loss_sum = tensor::empty({}, dtype::f32, logits.device());
  kernels_on(logits.device()).cross_entropy.forward(logits, labels, options, result);
  return result;
}

tensor cross_entropy_backward(const tensor& logits, const tensor& labels, const tensor& log_sum_exp,
                              double scale, const cross_entropy_options& options) {
  require_arguments(logits, labels, options);
  require_argument(operation, "log_sum_exp", log_sum_exp, dtype::f32, labels.shape());
  require_on(operation, "log_sum_exp", log_sum_exp, logits.device());
  auto gradient = empty_like(logits);
  kernels_on(logits.device()).cross_entropy.backward(logits, labels, log_sum_exp, scale, options, gradient);
  return gradient;
}

std::int64_t num_counted(const tensor& labels, const cross_entropy_options& options) {
  if (!labels.defined() || !is_label(labels.dtype()))
    throw_invalid(operation, "labels i64, i32 or u8", describe(labels));
  auto here = labels.to({});
  if (here.dtype() == dtype::u8) return num_other_than<std::uint8_t>(options.ignore_index, here);
  if (here.dtype() == dtype::i32) return num_other_than<std::int32_t>(options.ignore_index, here);
  return num_other_than<std::int64_t>(options.ignore_index, here);
}

void throw_label_out_of_range(std::int64_t label, std::int64_t sample, std::int64_t num_classes) {
  throw_invalid(operation, "labels in [0, " + std::to_string(num_classes) + ")",
                std::to_string(label) + " at sample " + std::to_string(sample));
}

}  // namespace troupe
