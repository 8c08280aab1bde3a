#include <limits>
#include <memory>

#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/softmax_row.cuh"
#include "troupe/tensor/async/deferred_reads.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"

// One block per sample computes its loss; then one block adds them, in an order that depends only on their
// number.

namespace troupe::cuda {
namespace {

class label_list {
 public:
  explicit label_list(const tensor& x) : elements_(x.bytes().data()), type_(x.dtype()) {}

  __device__ std::int64_t at(std::int64_t sample) const {
    if (type_ == dtype::u8) return static_cast<const std::uint8_t*>(elements_)[sample];
    if (type_ == dtype::i32) return static_cast<const std::int32_t*>(elements_)[sample];
    return static_cast<const std::int64_t*>(elements_)[sample];
  }

 private:
  const void* elements_;
  dtype type_;
};

/// Of one sample, and of several: `first_bad` is the first sample whose label is out of range.
struct totals {
  double loss_sum;
  std::int64_t num_correct, num_counted;
  std::int64_t first_bad, bad_label;
};

__device__ totals of_nothing() { return {0, 0, 0, INT64_MAX, 0}; }

__device__ void add_to(totals& all, const totals& more) {
  all.loss_sum += more.loss_sum;
  all.num_correct += more.num_correct;
  all.num_counted += more.num_counted;
  if (more.first_bad < all.first_bad) {
    all.first_bad = more.first_bad;
    all.bad_label = more.bad_label;
  }
}

struct loss_options {
  float smoothing;
  std::int64_t ignored;
};

/// The loss is log(sum e^(z - m)) - sum_j target_j (z_j - m), with m the largest score.
template <class T>
__global__ void __launch_bounds__(softmax_threads)
    forward_kernel(row_layout layout, const T* logits, label_list labels, loss_options options,
                   float* log_sum_exp, totals* of_samples) {
  std::int64_t sample = blockIdx.x;
  const auto* z = logits + sample * layout.size;
  auto scores = softmax_of_row(z, layout);
  auto top = scores.largest;
  auto below = 0.0F;  // of all scores, less the largest
  if (options.smoothing > 0)
    below = reduce_row<sum>(z, layout, top, [=](float score) { return score - top; });
  auto best = index_of_largest(z, layout, scores);
  if (threadIdx.x > 0) return;

  auto log_sum = log(static_cast<double>(scores.total));
  log_sum_exp[sample] = static_cast<float>(top + log_sum);
  auto label = labels.at(sample);
  auto found = of_nothing();
  if (label != options.ignored && (label < 0 || label >= layout.size)) {
    found.first_bad = sample;
    found.bad_label = label;
  } else if (label != options.ignored) {
    double smoothing = options.smoothing;
    auto target = (1 - smoothing) * (static_cast<double>(as_float(z[label])) - top) +
                  smoothing * below / static_cast<double>(layout.size);
    found.loss_sum = log_sum - target;
    found.num_correct = best == label;
    found.num_counted = 1;
  }
  of_samples[sample] = found;
}

__global__ void total_kernel(const totals* of_samples, std::int64_t num_samples, totals* all,
                             float* loss_sum) {
  __shared__ totals of_threads[block_threads];
  auto mine = of_nothing();
  for (auto i = static_cast<std::int64_t>(threadIdx.x); i < num_samples; i += block_threads)
    add_to(mine, of_samples[i]);
  of_threads[threadIdx.x] = mine;
  for (auto half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) add_to(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
  }
  if (threadIdx.x > 0) return;
  *all = of_threads[0];
  *loss_sum = of_threads[0].first_bad == INT64_MAX ? static_cast<float>(of_threads[0].loss_sum) : nanf("");
}

struct gradient_factors {
  float scale, spread, peak;
  std::int64_t ignored;
};

/// scale (e^(z - log_sum_exp) - spread), less the peak at the label. A label out of range makes its row NaN,
/// since throwing would require waiting for the GPU.
template <class T>
__global__ void __launch_bounds__(row_threads)
    backward_kernel(row_layout layout, const T* logits, label_list labels, const float* log_sum_exp,
                    gradient_factors factors, T* gradient) {
  std::int64_t sample = blockIdx.x, label = labels.at(sample);
  auto is_ignored = label == factors.ignored;
  auto scale = is_ignored || (label >= 0 && label < layout.size) ? factors.scale : nanf("");
  auto shift = log_sum_exp[sample];
  map_row(logits + sample * layout.size, gradient + sample * layout.size, layout,
          [=](std::int64_t j, float score) {
            if (is_ignored) return 0.0F;
            return scale * (expf(score - shift) - factors.spread) - (j == label ? factors.peak : 0);
          });
}

tensor memory_for(std::int64_t count, device target) {
  return tensor::empty({count * static_cast<std::int64_t>(sizeof(totals))}, dtype::u8, target);
}

void set_unknown(cross_entropy_result& result) {
  result.loss_sum = std::numeric_limits<double>::quiet_NaN();
  result.num_correct = result.num_counted = -1;
}

void forward(const tensor& logits, const tensor& labels, const cross_entropy_options& options,
             cross_entropy_result& result) {
  require_short_rows("cross_entropy", layout_of_rows(logits));
  auto num_samples = labels.num_elements();
  auto of_samples = memory_for(num_samples, logits.device()), all = memory_for(1, logits.device());
  with_floating(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    loss_options label_options{static_cast<float>(options.label_smoothing), options.ignore_index};
    launch_rows<T, softmax_threads>(logits.device(), num_samples, layout_of_rows(logits), forward_kernel<T>,
                                    elements_of<T>(logits), label_list(labels), label_options,
                                    elements_of<float>(result.log_sum_exp), elements_of<totals>(of_samples));
  });
  launch(logits.device(), 1, block_threads, total_kernel, elements_of<totals>(of_samples), num_samples,
         elements_of<totals>(all), elements_of<float>(result.device_loss_sum));
  if (capture_on(logits.device().index)) {
    return set_unknown(result);
  }
  auto known = std::make_shared<loss_totals>();
  auto read = [known, num_classes = logits.shape()[-1]](const tensor& here) {
    auto found = *elements_of<totals>(here);
    if (found.first_bad != INT64_MAX) throw_label_out_of_range(found.bad_label, found.first_bad, num_classes);
    *known = {found.loss_sum, found.num_correct, found.num_counted};
  };
  if (deferred_reads::defer(deferred_reads::content::losses, all, read)) {
    result.deferred = known;
    return set_unknown(result);
  }
  read(all.to({}));
  result.loss_sum = known->loss_sum;
  result.num_correct = known->num_correct;
  result.num_counted = known->num_counted;
}

void backward(const tensor& logits, const tensor& labels, const tensor& log_sum_exp, double scale,
              const cross_entropy_options& options, tensor& gradient) {
  auto size = static_cast<double>(logits.shape()[-1]);
  gradient_factors factors{static_cast<float>(scale), static_cast<float>(options.label_smoothing / size),
                           static_cast<float>(scale * (1 - options.label_smoothing)), options.ignore_index};
  with_floating(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(logits.device(), labels.num_elements(), layout_of_rows(logits, gradient),
                   backward_kernel<T>, elements_of<T>(logits), label_list(labels),
                   elements_of<float>(log_sum_exp), factors, elements_of<T>(gradient));
  });
}

}  // namespace

cross_entropy_kernels cross_entropy() { return {.forward = forward, .backward = backward}; }

}  // namespace troupe::cuda
