#include "troupe/ops/cpu/convolution/convolution.hpp"
#include "troupe/ops/cpu/convolution/convolution_geometry.hpp"
#include "troupe/ops/cpu/convolution/window_product.hpp"
#include "troupe/ops/cpu/product/default_rounding.hpp"

namespace troupe::cpu {
namespace {

/// What all images share.
struct forward_pass {
  const conv2d_problem& problem;
  const product_loops& loops;
  padded_planes planes = planes_under_windows(problem);
  std::vector<std::int64_t> taps = taps_of_windows(problem, planes, group_inputs(problem));
  std::vector<packed_weights> weights;  ///< [groups]

  forward_pass(const conv2d_problem& problem, const tensor& weight, const product_loops& loops)
      : problem(problem), loops(loops) {
    auto inner = std::ssize(taps);
    const auto* from = weight.values<float>().data();
    for (std::int64_t group = 0; group < problem.options.groups; ++group)
      weights.emplace_back(from + group * group_outputs(problem) * inner, group_outputs(problem), inner,
                           loops);
  }

  void run(const image_range& images, const float* x, const float* bias, float* y) const {
    default_rounding scope;
    auto inputs = group_inputs(problem), outputs = group_outputs(problem), out_size = size_of(problem.out);
    auto copied = zero_planes(planes, inputs);
    auto* padded = copied.values<float>().data();
    for (auto image = images.begin; image < images.end; ++image) {
      auto group = image % problem.options.groups;
      planes.copy(x + image * inputs * size_of(problem.in), inputs, padded);
      multiply_windows(weights[static_cast<std::size_t>(group)],
                       {padded, taps.data(), problem.out, planes.phase.w}, images.part,
                       {.c = y + image * outputs * out_size,
                        .stride = out_size,
                        .row_bias = bias ? bias + group * outputs : nullptr,
                        .relu = problem.options.relu},
                       loops);
    }
  }
};

}  // namespace

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y, const product_loops& loops) {
  const forward_pass pass(problem, weight, loops);
  const auto *from = x.values<float>().data(),
             *added = bias.defined() ? bias.values<float>().data() : nullptr;
  auto* to = y.values<float>().data();
  for_each_image_range(problem, parts_of_image(problem),
                       [&](const image_range& images) { pass.run(images, from, added, to); });
}

}  // namespace troupe::cpu
