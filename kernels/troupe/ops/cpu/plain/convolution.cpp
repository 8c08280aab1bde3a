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
void for_each_term(const conv2d_problem& of, const Term& term) {
  auto [stride, padding, dilation, groups, relu] = of.options;
  auto in_part = of.in_channels / groups, out_part = of.out_channels / groups;
  for (std::int64_t n = 0; n < of.batch; ++n)
    for (std::int64_t o = 0; o < of.out_channels; ++o)
      for (std::int64_t c = 0; c < in_part; ++c)
        for (std::int64_t k = 0; k < of.kernel.h * of.kernel.w; ++k) {
          auto row = k / of.kernel.w * dilation.h - padding.h,
               column = k % of.kernel.w * dilation.w - padding.w;
          auto rows = inside(of.out.h, of.in.h, stride.h, row);
          auto columns = inside(of.out.w, of.in.w, stride.w, column);
          auto image = (n * of.in_channels + o / out_part * in_part + c) * of.in.h;
          auto weight = (o * in_part + c) * of.kernel.h * of.kernel.w + k;
          for (auto i = rows.begin; i < rows.end; ++i)
            for (auto j = columns.begin; j < columns.end; ++j)
              term((image + i * stride.h + row) * of.in.w + j * stride.w + column, weight,
                   ((n * of.out_channels + o) * of.out.h + i) * of.out.w + j);
        }
}

void fill_with_bias(const conv2d_problem& of, const tensor& bias, tensor& y) {
  if (!bias.defined()) return y.fill_zero();
  auto size = of.out.h * of.out.w;
  auto* to = y.values<float>().data();
  for (std::int64_t n = 0; n < of.batch; ++n)
    for (auto value : bias.values<float>()) to = std::fill_n(to, size, value);
}

}  // namespace

bool convolution_takes(dtype type) { return type == dtype::f32; }

void convolution_forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
                         tensor& y) {
  fill_with_bias(of, bias, y);
  const auto *from = x.values<float>().data(), *factor = weight.values<float>().data();
  auto* to = y.values<float>().data();
  for_each_term(of, [&](auto at_x, auto at_w, auto at_y) { to[at_y] += from[at_x] * factor[at_w]; });
}

void convolution_backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight,
                                tensor& dx) {
  dx.fill_zero();
  const auto *from = dy.values<float>().data(), *factor = weight.values<float>().data();
  auto* to = dx.values<float>().data();
  for_each_term(of, [&](auto at_x, auto at_w, auto at_y) { to[at_x] += from[at_y] * factor[at_w]; });
}

void convolution_backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                                 tensor& dbias) {
  dweight.fill_zero();
  const auto *from = x.values<float>().data(), *factor = dy.values<float>().data();
  auto* to = dweight.values<float>().data();
  for_each_term(of, [&](auto at_x, auto at_w, auto at_y) { to[at_w] += from[at_x] * factor[at_y]; });
  if (!dbias.defined()) return;
  dbias.fill_zero();
  auto size = of.out.h * of.out.w;
  for (std::int64_t image = 0; image < of.batch * of.out_channels; ++image)
    for (std::int64_t i = 0; i < size; ++i)
      dbias.values<float>()[static_cast<std::size_t>(image % of.out_channels)] += factor[image * size + i];
}

}  // namespace troupe::cpu
