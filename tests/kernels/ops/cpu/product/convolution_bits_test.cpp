// Convolutions bit for bit: the definition in troupe/ops/cpu/convolution/convolution.hpp, term by term.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "kernels/ops/cpu/product/wide_product_loops.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "support/threads.hpp"
#include "troupe/ops/cpu/convolution/convolution.hpp"

using namespace troupe;
using namespace troupe::cpu;
using namespace troupe::testing;

namespace {

std::int64_t extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                    std::int64_t dilation) {
  return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

conv2d_problem problem_of(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, size_2d in,
                          size_2d kernel, const conv2d_options& options) {
  const auto& [stride, padding, dilation, groups, relu] = options;
  return {batch,
          inputs,
          outputs,
          in,
          {extent(in.h, kernel.h, stride.h, padding.h, dilation.h),
           extent(in.w, kernel.w, stride.w, padding.w, dilation.w)},
          kernel,
          options};
}

const std::vector<conv2d_problem> problems{
    problem_of(3, 1, 7, {28, 28}, {3, 3}, {.padding{1, 1}}),
    problem_of(2, 33, 20, {7, 5}, {3, 3}, {.padding{1, 1}, .relu = true}),
    problem_of(2, 5, 9, {19, 40}, {5, 2}, {.stride{2, 3}, .padding{2, 1}}),
    problem_of(2, 6, 4, {13, 11}, {3, 3}, {.stride{3, 2}, .padding{2, 1}, .dilation{2, 1}, .groups = 2}),
    problem_of(9, 3, 40, {4, 4}, {1, 1}, {.stride{2, 2}}),
    problem_of(1, 8, 8, {9, 9}, {3, 3}, {.stride{1, 2}, .padding{1, 1}, .dilation{1, 3}, .groups = 8}),
    problem_of(1, 2, 3, {1, 70}, {1, 9}, {.stride{4, 5}, .padding{3, 8}}),
};

struct operands {
  tensor x, weight, bias, dy;

  explicit operands(const conv2d_problem& of)
      : x(random_tensor({of.batch, of.in_channels, of.in.h, of.in.w}, "x")),
        weight(random_tensor({of.out_channels, of.in_channels / of.options.groups, of.kernel.h, of.kernel.w},
                             "weight")),
        bias(random_tensor({of.out_channels}, "bias")),
        dy(random_tensor({of.batch, of.out_channels, of.out.h, of.out.w}, "dy")) {}
};

/// A sum in the order of a product.
class ordered_sum {
 public:
  void add(float a, float b) {
    chain_ = std::fma(a, b, chain_);
    if (++count_ % 256 == 0) close();
  }
  float value() {
    if (count_ % 256 != 0) close();
    return sum_;
  }

 private:
  void close() {
    sum_ = count_ <= 256 ? chain_ : sum_ + chain_;
    chain_ = 0;
  }
  float sum_ = 0, chain_ = 0;
  std::int64_t count_ = 0;
};

/// An element of [N, C, H, W], or 0 of the padding.
float at(const tensor& from, std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
  const auto& extents = from.shape();
  if (i < 0 || i >= extents[2] || j < 0 || j >= extents[3]) return 0;
  return from
      .values<float>()[static_cast<std::size_t>(((n * extents[1] + c) * extents[2] + i) * extents[3] + j)];
}

/// Calls `element(n, c, i, j)` for each element of [N, C, H, W] and keeps what it returns.
template <class Element>
tensor elements(const shape& extents, const Element& element) {
  auto made = tensor::empty(extents);
  auto* to = made.values<float>().data();
  for (std::int64_t n = 0; n < extents[0]; ++n)
    for (std::int64_t c = 0; c < extents[1]; ++c)
      for (std::int64_t i = 0; i < extents[2]; ++i)
        for (std::int64_t j = 0; j < extents[3]; ++j) *to++ = element(n, c, i, j);
  return made;
}

tensor expected_forward(const conv2d_problem& of, const operands& with) {
  auto groups = of.options.groups, inputs = of.in_channels / groups, outputs = of.out_channels / groups;
  return elements(with.dy.shape(), [&](auto n, auto o, auto i, auto j) {
    ordered_sum sum;
    for (std::int64_t c = 0; c < inputs; ++c)
      for (std::int64_t k = 0; k < of.kernel.h; ++k)
        for (std::int64_t l = 0; l < of.kernel.w; ++l)
          sum.add(at(with.weight, o, c, k, l),
                  at(with.x, n, o / outputs * inputs + c,
                     i * of.options.stride.h - of.options.padding.h + k * of.options.dilation.h,
                     j * of.options.stride.w - of.options.padding.w + l * of.options.dilation.w));
    auto y = sum.value() + with.bias.values<float>()[static_cast<std::size_t>(o)];
    return of.options.relu && y <= 0 ? 0 : y;
  });
}

tensor expected_backward_input(const conv2d_problem& of, const operands& with) {
  auto groups = of.options.groups, inputs = of.in_channels / groups, outputs = of.out_channels / groups;
  return elements(with.x.shape(), [&](auto n, auto c, auto i, auto j) {
    ordered_sum sum;
    for (std::int64_t o = c / inputs * outputs; o < (c / inputs + 1) * outputs; ++o)
      for (std::int64_t k = 0; k < of.kernel.h; ++k)
        for (std::int64_t l = 0; l < of.kernel.w; ++l) {
          auto row = i + of.options.padding.h - k * of.options.dilation.h,
               column = j + of.options.padding.w - l * of.options.dilation.w;
          if (row % of.options.stride.h != 0 || column % of.options.stride.w != 0) continue;
          sum.add(at(with.weight, o, c % inputs, k, l),
                  at(with.dy, n, o, row / of.options.stride.h, column / of.options.stride.w));
        }
    return sum.value();
  });
}

tensor expected_backward_weight(const conv2d_problem& of, const operands& with) {
  auto groups = of.options.groups, inputs = of.in_channels / groups, outputs = of.out_channels / groups;
  return elements(with.weight.shape(), [&](auto o, auto c, auto k, auto l) {
    ordered_sum sum;
    for (std::int64_t n = 0; n < of.batch; ++n)
      for (std::int64_t i = 0; i < of.out.h; ++i)
        for (std::int64_t j = 0; j < of.out.w; ++j)
          sum.add(at(with.x, n, o / outputs * inputs + c,
                     i * of.options.stride.h - of.options.padding.h + k * of.options.dilation.h,
                     j * of.options.stride.w - of.options.padding.w + l * of.options.dilation.w),
                  at(with.dy, n, o, i, j));
    return sum.value();
  });
}

tensor forward(const conv2d_problem& of, const operands& with, const product_loops& loops) {
  auto y = tensor::empty(with.dy.shape());
  convolution_forward(of, with.x, with.weight, with.bias, y, loops);
  return y;
}

tensor backward_input(const conv2d_problem& of, const operands& with, const product_loops& loops) {
  auto dx = tensor::empty(with.x.shape());
  convolution_backward_input(of, with.dy, with.weight, dx, loops);
  return dx;
}

tensor backward_weight(const conv2d_problem& of, const operands& with, const product_loops& loops) {
  auto dweight = tensor::empty(with.weight.shape());
  convolution_backward_weight(of, with.x, with.dy, dweight, loops);
  return dweight;
}

}  // namespace

TEST_CASE("convolutions have the bits of their definition on every instruction set") {
  for (const auto& problem : problems) {
    operands with(problem);
    CAPTURE(problem.in_channels, problem.out_channels, problem.in.h, problem.in.w);
    for (const auto* loops : all_product_loops()) {
      CHECK(same_bits(forward(problem, with, *loops), expected_forward(problem, with)));
      CHECK(same_bits(backward_input(problem, with, *loops), expected_backward_input(problem, with)));
      CHECK(same_bits(backward_weight(problem, with, *loops), expected_backward_weight(problem, with)));
    }
  }
}

TEST_CASE("convolutions have the same bits on any number of threads, and an image alone those in a batch") {
  for (auto problem : {problem_of(5, 40, 64, {14, 14}, {3, 3}, {.padding{1, 1}}),
                       problem_of(1, 1, 64, {120, 90}, {5, 5}, {.padding{2, 2}}),
                       problem_of(1, 64, 1, {60, 60}, {3, 3}, {})}) {
    operands with(problem);
    const auto& loops = fastest_product_loops();
    auto all = [&] {
      return std::vector{forward(problem, with, loops), backward_input(problem, with, loops),
                         backward_weight(problem, with, loops)};
    };
    require_same_bits_on_threads(all);
    auto together = all();
    auto one = problem;
    one.batch = 1;
    auto last = problem.batch - 1;
    with.x = with.x.rows(last, 1);
    with.dy = with.dy.rows(last, 1);
    CHECK(same_bits(forward(one, with, loops), together[0].rows(last, 1)));
    CHECK(same_bits(backward_input(one, with, loops), together[1].rows(last, 1)));
  }
}
