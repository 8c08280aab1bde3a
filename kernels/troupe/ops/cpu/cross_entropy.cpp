#include <vector>

#include "troupe/math/exponential.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/lanes.hpp"
#include "troupe/ops/cpu/rows.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"
#include "troupe/ops/cpu/vector_math.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES float largest_of(const float* z, std::int64_t size) {
  return max_in_lanes(size, [&](std::int64_t i) { return z[i]; });
}

TROUPE_CLONES double sum_of_exponentials(const float* z, float largest, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return exp_f32(z[i] - largest); });
}

TROUPE_CLONES double sum_below(const float* z, float largest, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return z[i] - largest; });
}

/// scale (e^(z - log_sum_exp) - spread)
TROUPE_CLONES void gradient_of(const float* z, float log_sum_exp, float scale, float spread, float* dz,
                               std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dz[i] = scale * (exp_f32(z[i] - log_sum_exp) - spread);
}

std::int64_t label_at(const tensor& labels, std::int64_t sample) {
  auto at = static_cast<std::size_t>(sample);
  if (labels.type() == dtype::u8) return labels.values<std::uint8_t>()[at];
  if (labels.type() == dtype::i32) return labels.values<std::int32_t>()[at];
  return labels.values<std::int64_t>()[at];
}

/// The number of samples that are counted; throws for the first label that is outside the range.
std::int64_t count(const tensor& labels, std::int64_t num_classes, std::int64_t ignored) {
  std::int64_t counted = 0;
  for (std::int64_t sample = 0; sample < labels.num_elements(); ++sample) {
    auto label = label_at(labels, sample);
    if (label == ignored) continue;
    if (label < 0 || label >= num_classes) throw_label_out_of_range(label, sample, num_classes);
    ++counted;
  }
  return counted;
}

struct sample_result {
  double loss = 0;
  bool is_correct = false;
};

/// Of one row z: the loss is log(sum e^(z - m)) - sum_j target_j (z_j - m), with m the largest score.
sample_result result_of(const float* z, std::int64_t size, std::int64_t label, double smoothing,
                        float& log_sum_exp) {
  auto largest = largest_of(z, size);
  auto log_sum = logarithm(sum_of_exponentials(z, largest, size));
  log_sum_exp = static_cast<float>(largest + log_sum);
  if (label < 0) return {};
  auto below = double{z[label]} - largest;
  auto target = below;
  if (smoothing > 0)
    target = (1 - smoothing) * below + smoothing * sum_below(z, largest, size) / static_cast<double>(size);
  return {log_sum - target, below == 0 && !(largest_of(z, label) >= largest)};
}

void forward(const tensor& logits, const tensor& labels, const cross_entropy_options& options,
             cross_entropy_result& result) {
  auto size = row_size(logits);
  result.num_counted = count(labels, size, options.ignore_index);
  thread_local std::vector<sample_result> memory;
  auto& samples = memory;  // this thread's, from whichever thread computes
  samples.assign(static_cast<std::size_t>(labels.num_elements()), {});
  for_each_row(logits, [&](std::int64_t row) {
    auto label = label_at(labels, row), known = label == options.ignore_index ? -1 : label;
    auto at = static_cast<std::size_t>(row);
    samples[at] = result_of(read_row(logits, row, 0), size, known, options.label_smoothing,
                            result.log_sum_exp.values<float>()[at]);
  });
  for (const auto& sample : samples) {
    result.loss_sum += sample.loss;
    result.num_correct += sample.is_correct ? 1 : 0;
  }
  result.device_loss_sum.values<float>()[0] = static_cast<float>(result.loss_sum);
}

void backward(const tensor& logits, const tensor& labels, const tensor& log_sum_exp, double scale,
              const cross_entropy_options& options, tensor& gradient) {
  auto size = row_size(logits);
  count(labels, size, options.ignore_index);
  auto factor = static_cast<float>(scale);
  auto spread = static_cast<float>(options.label_smoothing / static_cast<double>(size));
  auto peak = static_cast<float>(scale * (1 - options.label_smoothing));
  for_each_row(logits, [&](std::int64_t row) {
    auto label = label_at(labels, row);
    const auto* z = read_row(logits, row, 0);
    write_row(gradient, row, 1, [&](float* dz) {
      if (label == options.ignore_index) return void(std::fill_n(dz, size, 0.0F));
      gradient_of(z, log_sum_exp.values<float>()[static_cast<std::size_t>(row)], factor, spread, dz, size);
      dz[label] -= peak;
    });
  });
}

}  // namespace

cross_entropy_kernels cross_entropy() { return {.forward = forward, .backward = backward}; }

}  // namespace troupe::cpu
