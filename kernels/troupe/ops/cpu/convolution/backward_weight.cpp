#include <algorithm>
#include <vector>

#include "troupe/ops/cpu/convolution/convolution.hpp"
#include "troupe/ops/cpu/convolution/convolution_geometry.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/product/default_rounding.hpp"
#include "troupe/ops/cpu/product/product_loops.hpp"

namespace troupe::cpu {
namespace {

/// The part of the weights of one group that a thread computes.
struct weight_part {
  std::int64_t group, first_input, inputs, first_output, outputs;
};

/// Parts for `threads` threads: of the input channels, or of the output channels where there are more of
/// them.
std::vector<weight_part> weight_parts(const conv2d_problem& problem, std::int64_t threads) {
  auto inputs = group_inputs(problem), outputs = group_outputs(problem);
  auto by_input = inputs >= outputs;
  auto size = by_input ? inputs : outputs;
  auto count = std::clamp<std::int64_t>(threads / problem.options.groups, 1, size);
  std::vector<weight_part> parts;
  for (std::int64_t group = 0; group < problem.options.groups; ++group)
    for (std::int64_t part = 0; part < count; ++part) {
      auto first = size * part / count, end = size * (part + 1) / count;
      parts.push_back(by_input ? weight_part{group, first, end - first, 0, outputs}
                               : weight_part{group, 0, inputs, first, end - first});
    }
  return parts;
}

/// The gradient of a part, transposed: [taps, outputs], a product of windows and dy^T over blocks of the
/// windows of all images.
class weight_gradient {
 public:
  weight_gradient(const conv2d_problem& problem, const weight_part& part, const float* x, const float* dy,
                  const product_loops& loops)
      : problem_(problem), part_(part), x_(x), dy_(dy), loops_(loops) {
    for (auto tap : taps_of_windows(problem, planes_, part.inputs))
      rows_.push_back(padded_.values<float>().data() + tap);
  }

  void compute(float* dweight) {
    for (std::int64_t first = 0; first < num_windows_; first += inner_block)
      add_block(first, std::min(inner_block, num_windows_ - first));
    store(dweight);
  }

 private:
  std::int64_t slot_of(std::int64_t image) const {
    return image % slots_ * part_.inputs * planes_.plane_size();
  }

  void add_block(std::int64_t first, std::int64_t inner) {
    runs_.clear();
    auto size = size_of(problem_.out);
    auto* panels = panels_.values<float>().data();
    for (auto window = first; window < first + inner;) {
      auto image = window / size, begin = window % size, end = std::min(size, begin + first + inner - window);
      copy_planes(image);
      add_runs(image, begin, end);
      pack_outputs(dy_ + (image * problem_.out_channels + output(0)) * size + begin, end - begin,
                   panels + (window - first) * loops_.panel_columns, inner);
      window += end - begin;
    }
    loops_.multiply_gathered(
        {rows_, runs_, panels, part_.outputs, inner},
        {.c = sums_.values<float>().data(), .stride = part_.outputs, .accumulate = first > 0});
  }

  /// Some windows of an image, as lines of panels that are `inner` lines long.
  void pack_outputs(const float* dy, std::int64_t windows, float* panels, std::int64_t inner) const {
    auto size = size_of(problem_.out), width = loops_.panel_columns;
    for (std::int64_t o = 0; o < part_.outputs; o += width) {
      loops_.pack_columns({dy + o * size, std::min(width, part_.outputs - o), windows, size, 1}, panels);
      panels += width * inner + panel_gap;
    }
  }

  std::int64_t output(std::int64_t o) const {
    return part_.group * group_outputs(problem_) + part_.first_output + o;
  }

  /// Only those that no earlier block has needed.
  void copy_planes(std::int64_t image) {
    if (image < num_copied_) return;
    num_copied_ = image + 1;
    auto channel = part_.group * group_inputs(problem_) + part_.first_input;
    planes_.copy(x_ + (image * problem_.in_channels + channel) * size_of(problem_.in), part_.inputs,
                 padded_.values<float>().data() + slot_of(image));
  }

  void add_runs(std::int64_t image, std::int64_t begin, std::int64_t end) {
    auto width = problem_.out.w;
    for (auto window = begin; window < end;) {
      auto column = window % width, count = std::min(width - column, end - window);
      runs_.push_back({slot_of(image) + window / width * planes_.phase.w + column, count});
      window += count;
    }
  }

  void store(float* dweight) const {
    const auto* from = sums_.values<float>().data();
    auto taps = std::ssize(rows_), kernel = size_of(problem_.kernel);
    for (std::int64_t o = 0; o < part_.outputs; ++o) {
      auto* to = dweight + (output(o) * group_inputs(problem_) + part_.first_input) * kernel;
      for (std::int64_t tap = 0; tap < taps; ++tap) to[tap] = from[tap * part_.outputs + o];
    }
  }

  const conv2d_problem& problem_;
  weight_part part_;
  const float *x_, *dy_;
  const product_loops& loops_;
  padded_planes planes_ = planes_under_windows(problem_);
  std::int64_t num_windows_ = problem_.batch * size_of(problem_.out);
  std::int64_t slots_ = std::min(problem_.batch, inner_block / size_of(problem_.out) + 2);
  tensor padded_ = zero_planes(planes_, slots_* part_.inputs);
  tensor panels_ = tensor::empty({packed_size(part_.outputs, loops_.panel_columns, inner_block)});
  tensor sums_ = tensor::empty({part_.inputs * size_of(problem_.kernel) * part_.outputs});
  std::vector<const float*> rows_;
  std::vector<element_run> runs_;
  std::int64_t num_copied_ = 0;
};

TROUPE_CLONES double plane_sum(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [x](std::int64_t i) { return x[i]; });
}

}  // namespace

void convolution_backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                 tensor& dweight, const product_loops& loops) {
  auto elements = convolution_elements(problem);
  auto parts = weight_parts(problem, threads_for(elements));
  const auto *inputs = x.values<float>().data(), *gradients = dy.values<float>().data();
  auto* to = dweight.values<float>().data();
  parallel_for(std::ssize(parts), elements, [&](std::int64_t index) {
    default_rounding scope;
    weight_gradient(problem, parts[static_cast<std::size_t>(index)], inputs, gradients, loops).compute(to);
  });
}

void convolution_backward_bias(const tensor& dy, tensor& dbias) {
  const auto images = dy.shape()[0], channels = dy.shape()[1], size = dy.shape()[2] * dy.shape()[3];
  const auto* from = dy.values<float>().data();
  auto* to = dbias.values<float>().data();
  parallel_for(channels, dy.num_elements(), [&](std::int64_t channel) {
    double sum = 0;
    for (std::int64_t n = 0; n < images; ++n) sum += plane_sum(from + (n * channels + channel) * size, size);
    to[channel] = static_cast<float>(sum);
  });
}

}  // namespace troupe::cpu
