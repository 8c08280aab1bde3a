#include <vector>

#include "troupe/math/elementary_functions.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/loops/vector_math.hpp"
#include "troupe/ops/cpu/rows.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES float largest_of(const float* z, std::int64_t size) { return largest_number(z, size); }

/// The result of one sample and its intermediate values.
struct sample_result {
  double loss = 0, sum_of_exponentials = 0;  ///< the sum of e^(z - largest)
  float largest = 0;
  bool is_correct = false;
};

TROUPE_CLONES void begin_rows(const float* z, std::int64_t rows, std::int64_t size, sample_result* samples) {
  for (std::int64_t row = 0; row < rows; ++row, z += size) {
    auto largest = largest_number(z, size);
    samples[row].largest = largest;
    samples[row].sum_of_exponentials =
        sum_in_lanes(size, [&](std::int64_t i) { return exp_f32(z[i] - largest); });
  }
}

TROUPE_CLONES double sum_below(const float* z, float largest, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return z[i] - largest; });
}

/// scale (e^(z - log_sum_exp) - spread)
TROUPE_CLONES void gradient_of(const float* __restrict z, float log_sum_exp, float scale, float spread,
                               float* __restrict dz, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dz[i] = scale * (exp_f32(z[i] - log_sum_exp) - spread);
}

std::int64_t label_at(const tensor& labels, std::int64_t sample) {
  auto at = static_cast<std::size_t>(sample);
  if (labels.dtype() == dtype::u8) return labels.values<std::uint8_t>()[at];
  if (labels.dtype() == dtype::i32) return labels.values<std::int32_t>()[at];
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

/// Computes the loss of one row z: log(sum e^(z - m)) - sum_j target_j (z_j - m), with m the largest score.
void finish_row(const float* z, std::int64_t size, std::int64_t label, double smoothing,
                sample_result& result, float& log_sum_exp) {
  auto log_sum = logarithm(result.sum_of_exponentials);
  log_sum_exp = static_cast<float>(result.largest + log_sum);
  if (label < 0) return;
  auto below = double{z[label]} - result.largest;
  auto target = below;
  if (smoothing > 0)
    target =
        (1 - smoothing) * below + smoothing * sum_below(z, result.largest, size) / static_cast<double>(size);
  result.loss = log_sum - target;
  // A NaN is ignored in the maximum, but makes the sum NaN.
  result.is_correct = log_sum == log_sum && below == 0 && !(largest_of(z, label) >= result.largest);
}

void forward(const tensor& logits, const tensor& labels, const cross_entropy_options& options,
             cross_entropy_result& result) {
  auto size = row_size(logits);
  result.num_counted = count(labels, size, options.ignore_index);
  thread_local std::vector<sample_result> memory;
  auto& samples = memory;  // this thread's, from whichever thread computes
  samples.assign(static_cast<std::size_t>(labels.num_elements()), {});
  for_each_rows(logits, [&](std::int64_t first, std::int64_t count) {
    const auto* z = read_rows(logits, first, count, 0);
    begin_rows(z, count, size, samples.data() + first);
    for (auto row = first; row < first + count; ++row, z += size) {
      auto label = label_at(labels, row), known = label == options.ignore_index ? -1 : label;
      auto at = static_cast<std::size_t>(row);
      finish_row(z, size, known, options.label_smoothing, samples[at],
                 result.log_sum_exp.values<float>()[at]);
    }
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
  for_each_rows(logits, [&](std::int64_t first, std::int64_t count) {
    const auto* z = read_rows(logits, first, count, 0);
    write_rows(gradient, first, count, 1, [&](float* dz) {
      for (auto row = first; row < first + count; ++row, z += size, dz += size) {
        auto label = label_at(labels, row);
        if (label == options.ignore_index) {
          std::fill_n(dz, size, 0.0F);
          continue;
        }
        gradient_of(z, log_sum_exp.values<float>()[static_cast<std::size_t>(row)], factor, spread, dz, size);
        dz[label] -= peak;
      }
    });
  });
}

}  // namespace

cross_entropy_kernels cross_entropy() { return {.forward = forward, .backward = backward}; }

}  // namespace troupe::cpu
