#include "troupe/ops/cpu/convolution.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

struct range {
  std::int64_t begin, end;
};

/// The positions i in [0, out) whose pixel i stride + offset lies in [0, in).
range inside(std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t offset) {
  auto rounded_up = [&](std::int64_t value) { return value <= 0 ? 0 : (value + stride - 1) / stride; };
  auto end = std::min(out, rounded_up(in - offset));
  return {std::min(rounded_up(-offset), end), end};
}

/// Calls `term(x, w, y)` with the offsets of the elements of each product, in a fixed order.
template <class Term>
void for_each_term(const conv2d_problem& problem, const Term& term) {
  auto [stride, padding, dilation, groups, relu] = problem.options;
  auto in_part = problem.in_channels / groups, out_part = problem.out_channels / groups;
  for (std::int64_t n = 0; n < problem.batch; ++n)
    for (std::int64_t o = 0; o < problem.out_channels; ++o)
      for (std::int64_t c = 0; c < in_part; ++c)
        for (std::int64_t k = 0; k < problem.kernel.h * problem.kernel.w; ++k) {
          auto row = k / problem.kernel.w * dilation.h - padding.h,
               column = k % problem.kernel.w * dilation.w - padding.w;
          auto rows = inside(problem.out.h, problem.in.h, stride.h, row);
          auto columns = inside(problem.out.w, problem.in.w, stride.w, column);
          auto image = (n * problem.in_channels + o / out_part * in_part + c) * problem.in.h;
          auto weight = (o * in_part + c) * problem.kernel.h * problem.kernel.w + k;
          for (auto i = rows.begin; i < rows.end; ++i)
            for (auto j = columns.begin; j < columns.end; ++j)
              term((image + i * stride.h + row) * problem.in.w + j * stride.w + column, weight,
                   ((n * problem.out_channels + o) * problem.out.h + i) * problem.out.w + j);
        }
}

void fill_with_bias(const conv2d_problem& problem, const tensor& bias, tensor& y) {
  if (!bias.defined()) return y.fill_zero();
  auto size = problem.out.h * problem.out.w;
  auto* to = y.values<float>().data();
  for (std::int64_t n = 0; n < problem.batch; ++n)
    for (auto value : bias.values<float>()) to = std::fill_n(to, size, value);
}

}  // namespace

bool convolution_takes(dtype type) { return type == dtype::f32; }

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y) {
  fill_with_bias(problem, bias, y);
  const auto *from = x.values<float>().data(), *factor = weight.values<float>().data();
  auto* to = y.values<float>().data();
  for_each_term(problem, [&](auto at_x, auto at_w, auto at_y) { to[at_y] += from[at_x] * factor[at_w]; });
}

void convolution_backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                                tensor& dx) {
  dx.fill_zero();
  const auto *from = dy.values<float>().data(), *factor = weight.values<float>().data();
  auto* to = dx.values<float>().data();
  for_each_term(problem, [&](auto at_x, auto at_w, auto at_y) { to[at_x] += from[at_y] * factor[at_w]; });
}

void convolution_backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                 tensor& dweight, tensor& dbias) {
  dweight.fill_zero();
  const auto *from = x.values<float>().data(), *factor = dy.values<float>().data();
  auto* to = dweight.values<float>().data();
  for_each_term(problem, [&](auto at_x, auto at_w, auto at_y) { to[at_w] += from[at_x] * factor[at_y]; });
  if (!dbias.defined()) return;
  dbias.fill_zero();
  auto size = problem.out.h * problem.out.w;
  for (std::int64_t image = 0; image < problem.batch * problem.out_channels; ++image)
    for (std::int64_t i = 0; i < size; ++i)
      dbias.values<float>()[static_cast<std::size_t>(image % problem.out_channels)] +=
          factor[image * size + i];
}

}  // namespace troupe::cpu
