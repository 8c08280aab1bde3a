#include <cmath>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/rows.hpp"

namespace troupe::cpu {
namespace {

/// The row's statistics in n = (x - mean) rstd.
struct row_statistics {
  float mean, rstd;
};

/// Rows and pointers to their statistics; a null mean counts as 0.
struct norm_rows {
  std::int64_t count, size;
  float *mean, *rstd;
  row_statistics of(std::int64_t row) const { return {mean ? mean[row] : 0, rstd[row]}; }
};

TROUPE_CLONES void normalise(const norm_rows& rows, const float* __restrict x, const float* __restrict gamma,
                             const float* __restrict beta, double eps, float* __restrict y) {
  auto size = rows.size;
  for (std::int64_t row = 0; row < rows.count; ++row, x += size, y += size) {
    float mean = 0;
    if (rows.mean) {
      mean = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return x[i]; }) /
                                static_cast<double>(size));
      rows.mean[row] = mean;
    }
    auto squares = sum_in_lanes(size, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    auto rstd = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + eps));
    rows.rstd[row] = rstd;
    for (std::int64_t i = 0; i < size; ++i) y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
  }
}

TROUPE_CLONES void input_gradient(const norm_rows& rows, const float* __restrict dy,
                                  const float* __restrict x, const float* __restrict gamma,
                                  float* __restrict dx) {
  auto size = rows.size;
  auto count = static_cast<double>(size);
  for (std::int64_t row = 0; row < rows.count; ++row, dy += size, x += size, dx += size) {
    auto [mean, rstd] = rows.of(row);
    auto sum_g = rows.mean ? sum_in_lanes(size, [&](std::int64_t i) { return dy[i] * gamma[i]; }) : 0;
    auto sum_g_n =
        rstd * sum_in_lanes(size, [&, m = mean](std::int64_t i) { return dy[i] * gamma[i] * (x[i] - m); });
    auto mean_g = static_cast<float>(sum_g / count), slope = static_cast<float>(rstd * sum_g_n / count);
    for (std::int64_t i = 0; i < size; ++i)
      dx[i] = rstd * ((dy[i] * gamma[i] - mean_g) - (x[i] - mean) * slope);
  }
}

/// Adds the rows in order.
template <std::int64_t Count>
[[gnu::always_inline]] inline void add_rows(const norm_rows& rows, std::int64_t first,
                                            const float* __restrict dy, const float* __restrict x,
                                            float* __restrict dgamma, float* __restrict dbeta) {
  auto size = rows.size;
  std::array<row_statistics, Count> statistics;
  for (std::int64_t r = 0; r < Count; ++r) statistics[r] = rows.of(first + r);
  for (std::int64_t i = 0; i < size; ++i) {
    auto gamma_sum = dgamma[i], beta_sum = dbeta[i];
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < Count; ++r) {
      auto gradient = dy[(first + r) * size + i];
      gamma_sum += gradient * ((x[(first + r) * size + i] - statistics[r].mean) * statistics[r].rstd);
      beta_sum += gradient;
    }
    dgamma[i] = gamma_sum;
    dbeta[i] = beta_sum;
  }
}

TROUPE_CLONES void weight_gradient(const norm_rows& rows, const float* dy, const float* x, float* dgamma,
                                   float* dbeta) {
  constexpr std::int64_t at_once = 4;
  std::int64_t row = 0;
  for (; row + at_once <= rows.count; row += at_once) add_rows<at_once>(rows, row, dy, x, dgamma, dbeta);
  for (; row < rows.count; ++row) add_rows<1>(rows, row, dy, x, dgamma, dbeta);
}

TROUPE_CLONES void add(const float* from, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] += from[i];
}

/// gamma or beta as f32; if undefined, the neutral value.
tensor weight_or(const tensor& weight, float neutral, std::int64_t size) {
  return weight.defined() ? float_copy(weight) : tensor::full({size}, neutral);
}

/// The forward pass writes the statistics.
norm_rows rows_at(std::int64_t first, std::int64_t count, const tensor& x, const tensor& mean,
                  const tensor& rstd) {
  auto statistics = [first](tensor values) {
    return values.defined() ? values.values<float>().data() + first : nullptr;
  };
  return {count, row_size(x), statistics(mean), statistics(rstd)};
}

void forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y, tensor& mean,
             tensor& rstd) {
  auto size = row_size(x);
  const auto scale = weight_or(gamma, 1, size), shift = weight_or(beta, 0, size);
  for_each_rows(x, [&](std::int64_t first, std::int64_t count) {
    const auto* from = read_rows(x, first, count, 0);
    write_rows(y, first, count, 1, [&](float* to) {
      normalise(rows_at(first, count, x, mean, rstd), from, scale.values<float>().data(),
                shift.values<float>().data(), eps, to);
    });
  });
}

void backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                    const tensor& rstd, tensor& dx) {
  const auto scale = weight_or(gamma, 1, row_size(x));
  for_each_rows(x, [&](std::int64_t first, std::int64_t count) {
    const auto *x_rows = read_rows(x, first, count, 0), *dy_rows = read_rows(dy, first, count, 1);
    write_rows(dx, first, count, 2, [&](float* to) {
      input_gradient(rows_at(first, count, x, mean, rstd), dy_rows, x_rows, scale.values<float>().data(), to);
    });
  });
}

/// Rows whose sum one thread computes.
constexpr std::int64_t rows_in_block = 32;

/// The sums over each block of rows, [blocks, 2, C]: dgamma, then dbeta.
tensor sums_of_blocks(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd) {
  auto size = row_size(x), rows = num_rows(x), num_blocks = (rows + rows_in_block - 1) / rows_in_block;
  auto sums = tensor::empty({num_blocks, 2, size});
  parallel_for(num_blocks, x.num_elements(), [&](std::int64_t block) {
    auto* dgamma = sums.values<float>().data() + block * 2 * size;
    std::fill_n(dgamma, 2 * size, 0.0F);
    auto first = block * rows_in_block, count = std::min(rows_in_block, rows - first);
    weight_gradient(rows_at(first, count, x, mean, rstd), read_rows(dy, first, count, 0),
                    read_rows(x, first, count, 1), dgamma, dgamma + size);
  });
  return sums;
}

/// Adds the blocks' sums, in order. `row` is 0 for dgamma, 1 for dbeta.
void combine(const tensor& sums, std::int64_t row, tensor& gradient, gradient_mode mode) {
  auto size = row_size(sums), num_blocks = sums.shape()[0];
  if (mode == gradient_mode::assign) gradient.fill_zero();
  std::array<float, block_elements> scratch;
  for (std::int64_t first = 0; first < size; first += block_elements) {
    auto count = std::min(block_elements, size - first);
    std::array<float, block_elements> total{};
    for (std::int64_t block = 0; block < num_blocks; ++block)
      add(sums.values<float>().data() + (block * 2 + row) * size + first, total.data(), count);
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
