#include "troupe/ops/norm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::gradient_mode;
using troupe::tensor;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

constexpr double eps = 1e-5;
enum class kind { layer, rms };

using row = std::vector<double>;

row row_of(const row& values, std::size_t at, std::size_t size) {
  auto first = values.begin() + static_cast<std::ptrdiff_t>(at * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

double mean_of(const row& x) {
  double sum = 0;
  for (auto value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

/// (x - mean) rstd in f64.
row normalised(kind which, row x) {
  auto mean = which == kind::layer ? mean_of(x) : 0;
  double squares = 0;
  for (auto& value : x) squares += (value - mean) * (value - mean);
  auto rstd = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (auto& value : x) value = (value - mean) * rstd;
  return x;
}

/// The gradient of sum(g n) by central differences in f64.
row difference_gradient(kind which, const row& x, const row& g) {
  constexpr double delta = 1e-5;
  auto value = [&](std::size_t j, double change) {
    auto moved = x;
    moved[j] += change;
    auto n = normalised(which, moved);
    double sum = 0;
    for (std::size_t i = 0; i < n.size(); ++i) sum += g[i] * n[i];
    return sum;
  };
  row result(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) result[j] = (value(j, delta) - value(j, -delta)) / (2 * delta);
  return result;
}

struct norm_problem {
  norm_problem(troupe::shape extents, dtype type)
      : size(extents[-1]),
        x(placed(random_tensor(extents, "x", type, 3))),
        dy(placed(random_tensor(extents, "dy", type))),
        gamma(placed(random_tensor(troupe::shape{size}, "gamma", type))),
        beta(placed(random_tensor(troupe::shape{size}, "beta", type))) {}
  std::int64_t size;
  tensor x, dy, gamma, beta;
};

struct outcome {
  tensor y, mean, rstd, dx;
};

outcome run(kind which, const norm_problem& p, const tensor& gamma, const tensor& beta) {
  if (which == kind::rms) {
    auto [y, rstd] = rms_norm_forward(p.x, gamma, eps);
    return {y, {}, rstd, rms_norm_backward_input(p.dy, p.x, gamma, rstd)};
  }
  auto [y, mean, rstd] = layer_norm_forward(p.x, gamma, beta, eps);
  return {y, mean, rstd, layer_norm_backward_input(p.dy, p.x, gamma, mean, rstd)};
}

void run_weight(kind which, const norm_problem& p, const outcome& o, tensor dgamma, tensor dbeta,
                gradient_mode mode) {
  if (which == kind::rms) return rms_norm_backward_weight(p.dy, p.x, o.rstd, dgamma, mode);
  layer_norm_backward_weight(p.dy, p.x, o.mean, o.rstd, dgamma, dbeta, mode);
}

/// y and dx against the definition, with gamma and beta or without.
void check_rows(kind which, const norm_problem& p, const tensor& gamma, const tensor& beta) {
  auto got = run(which, p, gamma, beta);
  CHECK(got.y.dtype() == p.x.dtype());
  auto x = values_of(p.x), dy = values_of(p.dy), y = values_of(got.y), dx = values_of(got.dx);
  auto size = static_cast<std::size_t>(p.size);
  auto scale = gamma.defined() ? values_of(gamma) : row(size, 1);
  auto shift = beta.defined() && which == kind::layer ? values_of(beta) : row(size, 0);
  auto tolerance = p.x.dtype() == dtype::f32 ? 4e-6 : 2e-2;
  for (std::size_t r = 0; r * size < x.size(); ++r) {
    auto x_row = row_of(x, r, size), g = row_of(dy, r, size), n = normalised(which, x_row);
    for (std::size_t j = 0; j < size; ++j) g[j] *= scale[j];
    auto gradient = difference_gradient(which, x_row, g);
    for (std::size_t j = 0; j < size; ++j) {
      CAPTURE(r, j);
      REQUIRE(std::abs(y[r * size + j] - (n[j] * scale[j] + shift[j])) <= tolerance * (1 + std::abs(n[j])));
      REQUIRE(std::abs(dx[r * size + j] - gradient[j]) <= tolerance);
    }
  }
}

/// What the sums over rows should be: dgamma, then dbeta, on top of `before`.
std::vector<exact_sum> weight_sums(kind which, const norm_problem& p, bool of_gamma, double before) {
  auto size = static_cast<std::size_t>(p.size);
  std::vector<exact_sum> sums(size);
  auto x = values_of(p.x), dy = values_of(p.dy);
  for (auto& sum : sums) sum.add(before);
  for (std::size_t r = 0; r * size < x.size(); ++r) {
    auto n = normalised(which, row_of(x, r, size));
    for (std::size_t j = 0; j < size; ++j) sums[j].add(dy[r * size + j] * (of_gamma ? n[j] : 1));
  }
  return sums;
}

constexpr kind kinds[] = {kind::layer, kind::rms};

}  // namespace

TEST_CASE("layer and RMS norm follow their definitions, and their input gradients finite differences") {
  for (auto which : kinds)
    for (auto type : floating_types)
      for (const auto& extents : {troupe::shape{3, 2, 37}, troupe::shape{5, 16}, troupe::shape{70}}) {
        norm_problem p(extents, type);
        check_rows(which, p, p.gamma, p.beta);
        check_rows(which, p, {}, {});
      }
}

TEST_CASE("weights of f32 serve activations of bf16") {
  norm_problem p({4, 33}, dtype::bf16), wide({4, 33}, dtype::f32);
  for (auto which : kinds) check_rows(which, p, wide.gamma, wide.beta);
}

TEST_CASE("the gradients of gamma and beta are sums over the rows, assigned or accumulated") {
  for (auto which : kinds)
    for (auto type : floating_types) {
      norm_problem p({3, 67, 19}, type);
      auto o = run(which, p, p.gamma, p.beta);
      auto dgamma = placed(tensor::full({19}, 100)), dbeta = placed(tensor::full({19}, 100));
      run_weight(which, p, o, dgamma, dbeta, gradient_mode::assign);
      require_close(dgamma, weight_sums(which, p, true, 0));
      if (which == kind::layer) require_close(dbeta, weight_sums(which, p, false, 0));
      run_weight(which, p, o, dgamma = placed(tensor::full({19}, 2)), {}, gradient_mode::accumulate);
      require_close(dgamma, weight_sums(which, p, true, 2));
    }
}

TEST_CASE("gradients of gamma may be bf16, rounded once") {
  norm_problem p({3, 67, 19}, dtype::f32);
  auto o = run(kind::layer, p, p.gamma, p.beta);
  auto dgamma = placed(tensor::zeros({19}, dtype::bf16)), dbeta = dgamma.clone();
  run_weight(kind::layer, p, o, dgamma, dbeta, gradient_mode::accumulate);
  require_close(dgamma, weight_sums(kind::layer, p, true, 0));
  require_close(dbeta, weight_sums(kind::layer, p, false, 0));
}

TEST_CASE("norms give the same bits on any number of threads") {
  norm_problem p({517, 203}, dtype::f32);
  for (auto which : kinds)
    troupe::testing::require_same_bits_on_threads([&] {
      auto o = run(which, p, p.gamma, p.beta);
      auto dgamma = placed(tensor::zeros({203})), dbeta = placed(tensor::zeros({203}));
      run_weight(which, p, o, dgamma, dbeta, gradient_mode::assign);
      return std::vector{o.y, o.rstd, o.dx, dgamma, dbeta};
    });
}

TEST_CASE("rows with a large mean keep their variance, and an empty batch gives sums of zero") {
  auto x = tensor::full({2, 64}, 10000);
  x.values<float>()[3] = 10001;
  auto result = layer_norm_forward(placed(x), {}, {}, 0);
  CHECK(std::abs(values_of(result.y)[3] - std::sqrt(63.0F)) < 1e-2);
  auto none = placed(tensor::zeros({0, 5})), gradient = placed(tensor::full({5}, 3));
  layer_norm_backward_weight(none, none, placed(tensor::zeros({0})), placed(tensor::zeros({0})), gradient, {},
                             gradient_mode::assign);
  CHECK(values_of(gradient) == row(5, 0));
}

TEST_CASE("norms refuse arguments of other shapes and dtypes", "[host]") {
  auto x = tensor::zeros({2, 3}), rows = tensor::zeros({2}), weight = tensor::zeros({3});
  CHECK_THROWS_WITH(layer_norm_forward(tensor::zeros({2, 0}), {}, {}, eps),
                    ContainsSubstring("[layer_norm] expected x [..., C] with C >= 1, got f32[2, 0]"));
  CHECK_THROWS_WITH(troupe::rms_norm_forward(tensor::zeros(troupe::shape{}), {}, eps),
                    ContainsSubstring("[rms_norm] expected x"));
  CHECK_THROWS_WITH(troupe::rms_norm_forward({}, {}, eps), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(layer_norm_forward(x, rows, {}, eps), ContainsSubstring("gamma f32[3], got f32[2]"));
  CHECK_THROWS_WITH(layer_norm_forward(x, weight, tensor::zeros({3}, dtype::i64), eps),
                    ContainsSubstring("beta of f32, bf16 or f16"));
  CHECK_THROWS_WITH(layer_norm_backward_input(rows, x, weight, rows, rows),
                    ContainsSubstring("[layer_norm_backward_input] expected dy f32[2, 3], got f32[2]"));
  CHECK_THROWS_WITH(layer_norm_backward_input(x, x, weight, weight, rows),
                    ContainsSubstring("mean f32[2], got f32[3]"));
  CHECK_THROWS_WITH(rms_norm_backward_input(x, x, weight, weight),
                    ContainsSubstring("[rms_norm_backward_input] expected rstd f32[2], got f32[3]"));
  CHECK_THROWS_WITH(layer_norm_backward_weight(x, x, rows, rows, rows, {}, gradient_mode::assign),
                    ContainsSubstring("[layer_norm_backward_weight] expected dgamma f32[3]"));
  CHECK_THROWS_WITH(rms_norm_backward_weight(x, x, rows, rows, gradient_mode::assign),
                    ContainsSubstring("[rms_norm_backward_weight] expected dgamma f32[3]"));
}
