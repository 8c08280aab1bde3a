#include "troupe/ops/pooling.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rounded.hpp"
#include "troupe/ops/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

struct extents_and_options {
  shape x;
  pool2d_options options;
};

const std::vector<extents_and_options> problems{
    {{2, 3, 6, 8}, {}},
    {{2, 1, 7, 5}, {}},
    {{1, 5, 9, 8}, {{3, 3}, {2, 2}, {1, 1}}},
    {{3, 2, 11, 40}, {{3, 2}, {1, 1}, {1, 1}}},
    {{2, 2, 10, 13}, {{2, 3}, {4, 5}, {1, 1}, false}},
    {{1, 1, 5, 5}, {{5, 5}, {1, 3}, {2, 2}, false}},
    {{1, 2, 19, 20}, {{17, 18}, {1, 1}, {0, 0}}},
    {{40, 7, 4, 4}, {{2, 2}, {2, 2}, {1, 0}}},
    {{3, 3, 9, 1}, {{3, 1}, {2, 1}, {1, 0}}},
    {{1, 2, 1, 3}, {{1, 2}, {1, 7}, {0, 0}}},
    {{2, 3, 5, 16}, {}},
};
const std::vector<dtype> floating{dtype::f32, dtype::bf16, dtype::f16};

/// Calls `window(y, pixels)` with each window's element of y and its pixels' elements of x, row by row.
template <class Window>
void for_each_window(const extents_and_options& problem, const Window& window) {
  const auto& [x, options] = problem;
  auto [kernel, stride, padding, include] = options;
  auto rows = (x[2] + 2 * padding.h - kernel.h) / stride.h + 1;
  auto columns = (x[3] + 2 * padding.w - kernel.w) / stride.w + 1;
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        std::vector<std::size_t> pixels;
        for (auto row = i * stride.h - padding.h; row < i * stride.h - padding.h + kernel.h; ++row)
          for (auto column = j * stride.w - padding.w; column < j * stride.w - padding.w + kernel.w; ++column)
            if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
              pixels.push_back(static_cast<std::size_t>((plane * x[2] + row) * x[3] + column));
        window(at++, pixels);
      }
}

double divisor(const pool2d_options& options, std::size_t num_pixels) {
  return options.count_include_pad ? static_cast<double>(options.kernel.h * options.kernel.w)
                                   : static_cast<double>(num_pixels);
}

/// The first of the largest.
std::size_t largest(const std::vector<double>& x, const std::vector<std::size_t>& pixels) {
  return *std::ranges::max_element(pixels, {}, [&](std::size_t at) { return x[at]; });
}

std::vector<double> expected_max(const extents_and_options& problem, const std::vector<double>& x) {
  std::vector<double> y;
  for_each_window(problem, [&](std::size_t, const auto& pixels) { y.push_back(x[largest(x, pixels)]); });
  return y;
}

std::vector<exact_sum> expected_average(const extents_and_options& problem, const std::vector<double>& x) {
  std::vector<exact_sum> y;
  for_each_window(problem, [&](std::size_t, const auto& pixels) {
    auto& sum = y.emplace_back();
    for (auto at : pixels) sum.add(x[at] / divisor(problem.options, pixels.size()));
  });
  return y;
}

/// For each element of x the sum of dy times `part(pixel, pixels)` over the windows that hold it.
template <class Part>
std::vector<exact_sum> expected_gradient(const extents_and_options& problem, const std::vector<double>& dy,
                                         const Part& part) {
  std::vector<exact_sum> dx(static_cast<std::size_t>(problem.x.num_elements()));
  for_each_window(problem, [&](std::size_t at_y, const auto& pixels) {
    for (auto at : pixels) dx[at].add(dy[at_y] * part(at, pixels));
  });
  return dx;
}

/// The derivative of the sum of dy times `forward(x)` with respect to element `at` of x.
double finite_difference(std::vector<double> x, std::size_t at, const std::vector<double>& dy,
                         const std::function<std::vector<double>(const std::vector<double>&)>& forward) {
  constexpr double step = 1e-6;
  auto objective = [&] {
    double sum = 0;
    auto y = forward(x);
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  x[at] += step;
  auto above = objective();
  x[at] -= 2 * step;
  return (above - objective()) / (2 * step);
}

}  // namespace

TEST_CASE("max pooling takes the largest element of each window, and its gradient goes to that element") {
  for (auto type : floating)
    for (const auto& problem : problems) {
      auto x = placed(rounded(random_tensor(problem.x, "x"), type));
      auto [y, indices] = max_pool2d_forward(x, problem.options);
      auto values = values_of(x);
      CHECK(values_of(y) == expected_max(problem, values));
      CHECK(indices.dtype() == (problem.options.kernel.h == 17 ? dtype::i32 : dtype::u8));

      auto dy = placed(rounded(random_tensor(y.shape(), "dy"), type));
      require_close(max_pool2d_backward(dy, indices, problem.x, problem.options),
                    expected_gradient(problem, values_of(dy), [&](std::size_t at, const auto& pixels) {
                      return at == largest(values, pixels) ? 1.0 : 0.0;
                    }));
    }
}

TEST_CASE("average pooling takes the mean of each window, with or without the padding, and its gradient") {
  for (auto type : floating)
    for (auto include : {true, false})
      for (auto problem : problems) {
        problem.options.count_include_pad = include;
        auto x = placed(rounded(random_tensor(problem.x, "x"), type));
        auto y = avg_pool2d_forward(x, problem.options);
        require_close(y, expected_average(problem, values_of(x)));

        auto dy = placed(rounded(random_tensor(y.shape(), "dy"), type));
        require_close(avg_pool2d_backward(dy, problem.x, problem.options),
                      expected_gradient(problem, values_of(dy), [&](std::size_t, const auto& pixels) {
                        return 1 / divisor(problem.options, pixels.size());
                      }));
      }
}

TEST_CASE("the reference gradients of pooling are those of finite differences", "[host]") {
  for (const auto& problem : problems) {
    auto x = values_of(random_tensor(problem.x, "x"));
    auto dy = values_of(random_tensor({static_cast<std::int64_t>(expected_max(problem, x).size())}, "dy"));
    auto of_max = expected_gradient(problem, dy, [&](std::size_t at, const auto& pixels) {
      return at == largest(x, pixels) ? 1.0 : 0.0;
    });
    auto of_average = expected_gradient(problem, dy, [&](std::size_t, const auto& pixels) {
      return 1 / divisor(problem.options, pixels.size());
    });
    auto average = [&](const std::vector<double>& values) {
      std::vector<double> y;
      for (const auto& sum : expected_average(problem, values)) y.push_back(sum.value);
      return y;
    };
    for (std::size_t at = 0; at < x.size(); at += x.size() / 3) {
      auto maximum = [&](const std::vector<double>& values) { return expected_max(problem, values); };
      CHECK(std::abs(finite_difference(x, at, dy, maximum) - of_max[at].value) < 1e-6);
      CHECK(std::abs(finite_difference(x, at, dy, average) - of_average[at].value) < 1e-6);
    }
  }
}

TEST_CASE("of equal elements the first is the maximum, and NaN is larger than all") {
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  for (const auto& options : {pool2d_options{}, pool2d_options{{2, 2}, {2, 2}, {1, 1}}}) {
    auto x = placed(tensor::full({1, 1, 4, 4}, -infinity));
    auto [y, indices] = max_pool2d_forward(x, options);
    CHECK(same_bits(y, tensor::full(y.shape(), -infinity)));
    auto dx = max_pool2d_backward(placed(tensor::full(y.shape(), 1)), indices, x.shape(), options);
    // The first pixel of every window.
    auto expected = options.padding.h == 0
                        ? std::vector<float>{1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0}
                        : std::vector<float>{1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1};
    CHECK(same_bits(dx, tensor::from(expected, {1, 1, 4, 4})));
    auto changed = x.to({}).clone();
    changed.values<float>()[5] = std::numeric_limits<float>::quiet_NaN();
    changed.values<float>()[4] = infinity;
    auto with_nan = max_pool2d_forward(placed(changed), options).y;
    CHECK(std::isnan(values_of(with_nan)[options.padding.h == 0 ? 0 : 4]));
  }
  // 5 stands at (0, 1) and (1, 0).
  for (const auto& options : {pool2d_options{}, pool2d_options{{2, 2}, {1, 1}}}) {
    auto x = placed(tensor::from(std::vector<float>{1, 5, 5, 0}, {1, 1, 2, 2}));
    CHECK(elements_of<std::uint8_t>(max_pool2d_forward(x, options).indices)[0] == 1);
  }
}

TEST_CASE("global average pooling is the mean of each channel of each image") {
  for (auto type : floating)
    for (const auto& extents :
         {shape{2, 3, 7, 7}, shape{1, 1, 1, 1}, shape{5, 2, 3, 100}, shape{0, 2, 3, 3}}) {
      auto x = placed(rounded(random_tensor(extents, "x"), type));
      auto y = global_avg_pool_forward(x);
      CHECK(y.shape() == shape{extents[0], extents[1], 1, 1});
      auto size = static_cast<std::size_t>(extents[2] * extents[3]);
      std::vector<exact_sum> sums(static_cast<std::size_t>(y.num_elements()));
      auto values = values_of(x);
      for (std::size_t i = 0; i < values.size(); ++i)
        sums[i / size].add(values[i] / static_cast<double>(size));
      require_close(y, sums);

      auto dy = placed(rounded(random_tensor(y.shape(), "dy"), type));
      auto gradients = values_of(dy);
      std::vector<exact_sum> dx(values.size());
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i].add(gradients[i / size] / static_cast<double>(size));
      require_close(global_avg_pool_backward(dy, extents), dx);
    }
}

TEST_CASE("pooling gives the same bits on any number of threads") {
  auto x = placed(random_tensor({33, 7, 28, 29}, "x"));
  for (const auto& options : {pool2d_options{}, pool2d_options{{3, 3}, {2, 2}, {1, 1}}}) {
    set_num_threads(1);
    auto [y, indices] = max_pool2d_forward(x, options);
    auto dy = placed(random_tensor(y.shape(), "dy"));
    auto dx = max_pool2d_backward(dy, indices, x.shape(), options);
    auto average = avg_pool2d_forward(x, options), mean = global_avg_pool_forward(x);
    auto average_dx = avg_pool2d_backward(dy, x.shape(), options);
    set_num_threads(3);
    CHECK(same_bits(max_pool2d_forward(x, options).y, y));
    CHECK(same_bits(max_pool2d_forward(x, options).indices, indices));
    CHECK(same_bits(max_pool2d_backward(dy, indices, x.shape(), options), dx));
    CHECK(same_bits(avg_pool2d_forward(x, options), average));
    CHECK(same_bits(avg_pool2d_backward(dy, x.shape(), options), average_dx));
    CHECK(same_bits(global_avg_pool_forward(x), mean));
    set_num_threads(1);
  }
}

TEST_CASE("pooling of no images gives no images") {
  auto none = placed(tensor::empty({0, 2, 4, 4}));
  auto [y, indices] = max_pool2d_forward(none);
  CHECK(y.shape() == shape{0, 2, 2, 2});
  CHECK(max_pool2d_backward(y, indices, none.shape()).shape() == none.shape());
  CHECK(avg_pool2d_backward(avg_pool2d_forward(none), none.shape()).shape() == none.shape());
}

TEST_CASE("pooling names the argument that does not fit", "[host]") {
  auto x = tensor::zeros({1, 2, 4, 4}), dy = tensor::zeros({1, 2, 2, 2});
  auto indices = tensor::zeros({1, 2, 2, 2}, dtype::u8);
  CHECK_THROWS_WITH(max_pool2d_forward(tensor::zeros({1, 2, 4, 4}, dtype::u8)),
                    ContainsSubstring("[max_pool2d] expected x of f32, bf16 or f16"));
  CHECK_THROWS_WITH(avg_pool2d_forward({}), ContainsSubstring("[avg_pool2d]"));
  CHECK_THROWS_WITH(max_pool2d_forward(tensor::zeros({4, 4})),
                    ContainsSubstring("x [N, C, H, W], got [4, 4]"));
  CHECK_THROWS_WITH(max_pool2d_forward(x, {{0, 2}}), ContainsSubstring("kernel and stride of 1 to 2^24"));
  CHECK_THROWS_WITH(max_pool2d_forward(x, {{5000, 5000}}), ContainsSubstring("5000 x 5000 and 2 x 2"));
  CHECK_THROWS_WITH(max_pool2d_forward(x, {{2, 2}, {2, 0}}), ContainsSubstring("2 x 2 and 2 x 0"));
  CHECK_THROWS_WITH(max_pool2d_forward(x, {{2, 2}, {2, 2}, {2, 0}}),
                    ContainsSubstring("padding from 0 to half the kernel 2 x 2, got 2 x 0"));
  CHECK_THROWS_WITH(avg_pool2d_forward(x, {{5, 5}}),
                    ContainsSubstring("4 x 4 padded by 0 x 0 for a kernel of 5 x 5"));
  CHECK_THROWS_WITH(max_pool2d_backward(x, indices, x.shape()), ContainsSubstring("dy f32[1, 2, 2, 2]"));
  CHECK_THROWS_WITH(max_pool2d_backward(dy, dy, x.shape()), ContainsSubstring("indices u8[1, 2, 2, 2]"));
  CHECK_THROWS_WITH(avg_pool2d_backward(x, x.shape()), ContainsSubstring("dy f32[1, 2, 2, 2]"));
  CHECK_THROWS_WITH(global_avg_pool_forward(tensor::zeros({1, 2, 0, 4})), ContainsSubstring("at least 1"));
  CHECK_THROWS_WITH(global_avg_pool_backward(dy, x.shape()), ContainsSubstring("dy f32[1, 2, 1, 1]"));
}
