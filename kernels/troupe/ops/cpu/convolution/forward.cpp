#include "troupe/ops/cpu/convolution.hpp"
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
  std::vector<packed_weights> weights;  ///< of each group

  forward_pass(const conv2d_problem& of, const tensor& weight, const product_loops& by)
      : problem(of), loops(by) {
    auto inner = std::ssize(taps);
    const auto* from = weight.values<float>().data();
    for (std::int64_t group = 0; group < problem.options.groups; ++group)
      weights.emplace_back(from + group * group_outputs(problem) * inner, group_outputs(problem), inner,
                           loops);
  }

  void run(const float* x, std::int64_t group, const image_part& part, const block_target& to) const {
    default_rounding scope;
    auto copied = zero_planes(planes, group_inputs(problem));
    auto* padded = copied.values<float>().data();
    planes.copy(x, group_inputs(problem), padded);
    multiply_windows(weights[static_cast<std::size_t>(group)],
                     {padded, taps.data(), problem.out, planes.phase.w}, part, to, loops);
  }
};

}  // namespace

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y, const product_loops& loops) {
  const forward_pass pass(problem, weight, loops);
  const auto* from = x.values<float>().data();
  const auto* added = bias.defined() ? bias.values<float>().data() : nullptr;
  auto* to = y.values<float>().data();
  auto in_size = group_inputs(problem) * size_of(problem.in), out_size = size_of(problem.out);
  auto groups = problem.options.groups, outputs = group_outputs(problem), parts = parts_of_image(problem);
  parallel_for(problem.batch * groups * parts, convolution_elements(problem), [&](std::int64_t index) {
    auto image = index / parts, group = image % groups;
    pass.run(from + image * in_size, group, {index % parts, parts},
             {.c = to + image * outputs * out_size,
              .stride = out_size,
              .row_bias = added ? added + group * outputs : nullptr,
              .relu = problem.options.relu});
  });
}

}  // namespace troupe::cpu
