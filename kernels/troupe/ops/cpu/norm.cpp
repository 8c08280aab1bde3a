#include <cmath>

#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/float_copy.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/lanes.hpp"
#include "troupe/ops/cpu/rows.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES double sum_of(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return x[i]; });
}

TROUPE_CLONES double sum_of_squares(const float* x, float mean, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

TROUPE_CLONES void normalise(const float* x, float mean, float rstd, const float* gamma, const float* beta,
                             float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
}

/// The row's statistics, on which n = (x - mean) rstd rests.
struct row_statistics {
  float mean, rstd;
};

TROUPE_CLONES double sum_of_g(const float* dy, const float* gamma, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return dy[i] * gamma[i]; });
}

TROUPE_CLONES double sum_of_g_n(const float* dy, const float* gamma, const float* x, row_statistics of,
                                std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return dy[i] * gamma[i] * ((x[i] - of.mean) * of.rstd); });
}

TROUPE_CLONES void input_gradient(const float* dy, const float* gamma, const float* x, row_statistics of,
                                  float mean_g, float mean_g_n, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto n = (x[i] - of.mean) * of.rstd;
    dx[i] = of.rstd * (dy[i] * gamma[i] - mean_g - n * mean_g_n);
  }
}

TROUPE_CLONES void add_row(const float* dy, const float* x, row_statistics of, float* dgamma, float* dbeta,
                           std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    dgamma[i] += dy[i] * ((x[i] - of.mean) * of.rstd);
    dbeta[i] += dy[i];
  }
}

TROUPE_CLONES void add(const float* from, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] += from[i];
}

/// gamma or beta as f32; where there is none, what changes nothing.
tensor weight_or(const tensor& weight, float neutral, std::int64_t size) {
  return weight.defined() ? float_copy(weight) : tensor::full({size}, neutral);
}

void forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y, tensor& mean,
             tensor& rstd) {
  auto size = row_size(x);
  const auto scale = weight_or(gamma, 1, size), shift = weight_or(beta, 0, size);
  for_each_row(x, [&](std::int64_t row) {
    const auto* from = read_row(x, row, 0);
    auto at = static_cast<std::size_t>(row);
    auto count = static_cast<double>(size);
    row_statistics of{mean.defined() ? static_cast<float>(sum_of(from, size) / count) : 0, 0};
    of.rstd = static_cast<float>(1 / std::sqrt(sum_of_squares(from, of.mean, size) / count + eps));
    if (mean.defined()) mean.values<float>()[at] = of.mean;
    rstd.values<float>()[at] = of.rstd;
    write_row(y, row, 1, [&](float* to) {
      normalise(from, of.mean, of.rstd, scale.values<float>().data(), shift.values<float>().data(), to, size);
    });
  });
}

row_statistics statistics_at(const tensor& mean, const tensor& rstd, std::int64_t row) {
  auto at = static_cast<std::size_t>(row);
  return {mean.defined() ? mean.values<float>()[at] : 0, rstd.values<float>()[at]};
}

void backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                    const tensor& rstd, tensor& dx) {
  auto size = row_size(x);
  const auto scale = weight_or(gamma, 1, size);
  for_each_row(x, [&](std::int64_t row) {
    const auto *x_row = read_row(x, row, 0), *dy_row = read_row(dy, row, 1);
    const auto* weight = scale.values<float>().data();
    auto of = statistics_at(mean, rstd, row);
    auto count = static_cast<double>(size);
    auto mean_g = mean.defined() ? sum_of_g(dy_row, weight, size) / count : 0;
    auto mean_g_n = sum_of_g_n(dy_row, weight, x_row, of, size) / count;
    write_row(dx, row, 2, [&](float* to) {
      input_gradient(dy_row, weight, x_row, of, static_cast<float>(mean_g), static_cast<float>(mean_g_n), to,
                     size);
    });
  });
}

/// Rows whose sum one thread computes.
constexpr std::int64_t rows_in_block = 32;

/// For each block of rows the sums over them: dgamma's row, then dbeta's. [blocks, 2, C]
tensor sums_of_blocks(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd) {
  auto size = row_size(x), rows = num_rows(x), num_blocks = (rows + rows_in_block - 1) / rows_in_block;
  auto sums = tensor::empty({num_blocks, 2, size});
  parallel_for(
      num_blocks, std::max<std::int64_t>(1, 16384 / (size * rows_in_block)), [&](std::int64_t block) {
        auto* dgamma = sums.values<float>().data() + block * 2 * size;
        std::fill_n(dgamma, 2 * size, 0.0F);
        for (auto row = block * rows_in_block; row < std::min(rows, (block + 1) * rows_in_block); ++row)
          add_row(read_row(dy, row, 0), read_row(x, row, 1), statistics_at(mean, rstd, row), dgamma,
                  dgamma + size, size);
      });
  return sums;
}

/// Adds what the blocks found, in order. `which` is 0 for dgamma, 1 for dbeta.
void combine(const tensor& sums, std::int64_t which, tensor& gradient, gradient_mode mode) {
  auto size = row_size(sums), num_blocks = sums.extents()[0];
  if (mode == gradient_mode::assign) gradient.fill_zero();
  std::array<float, block_elements> scratch;
  for (std::int64_t first = 0; first < size; first += block_elements) {
    auto count = std::min(block_elements, size - first);
    std::array<float, block_elements> total{};
    for (std::int64_t block = 0; block < num_blocks; ++block)
      add(sums.values<float>().data() + (block * 2 + which) * size + first, total.data(), count);
    auto* target = block_to_write(gradient, first, scratch);
    add(read_block(gradient, first, count, scratch), total.data(), count);
    std::copy_n(total.data(), count, target);
    write_block(gradient, first, count, target);
  }
}

void backward_weight(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd,
                     tensor& dgamma, tensor& dbeta, gradient_mode mode) {
  auto sums = sums_of_blocks(dy, x, mean, rstd);
  if (dgamma.defined()) combine(sums, 0, dgamma, mode);
  if (dbeta.defined()) combine(sums, 1, dbeta, mode);
}

}  // namespace

norm_kernels norm() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cpu
