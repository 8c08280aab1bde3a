#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <span>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "troupe/ops/reduction.hpp"

// Reductions of rows on a GPU have one order, whatever the dtype and the alignment: that of 256 threads, each
// of which combines every 256th element of a part of 16384, and of halves of their results.

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::size_t part_size = 16384, num_threads = 256;

struct operation {
  float neutral;
  float (*combine)(float a, float b);
  tensor (*reduce)(const tensor& x, const reduction_options& options);
};

const operation operations[] = {
    {0, [](float a, float b) { return a + b; }, sum},
    // Of zeros of both signs, the one that comes first in this order is the result.
    {-INFINITY, [](float a, float b) { return b > a ? b : a; }, max},
    {INFINITY, [](float a, float b) { return b < a ? b : a; }, min}};

/// Folds groups of `size` results, `step` apart, onto their first halves until one is left of each.
void fold(const operation& by, std::array<float, num_threads>& results, std::size_t step, std::size_t size) {
  for (auto half = size / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < num_threads; ++i)
      if (i / step % size < half) results[i] = by.combine(results[i], results[i + half * step]);
}

float of_part(const operation& by, std::span<const float> x) {
  std::array<float, num_threads> results;
  results.fill(by.neutral);
  for (std::size_t i = 0; i < x.size(); ++i)
    results[i % num_threads] = by.combine(results[i % num_threads], x[i]);
  fold(by, results, 1, 32);
  fold(by, results, 32, 8);
  return results[0];
}

float of_row(const operation& by, std::vector<float> x) {
  do {
    std::vector<float> results;
    for (std::size_t first = 0; first < x.size(); first += part_size)
      results.push_back(of_part(by, std::span(x).subspan(first, std::min(part_size, x.size() - first))));
    x = results;
  } while (x.size() > 1);
  return x[0];
}

tensor expected(const operation& by, const tensor& x) {
  auto values = values_of(x);
  std::vector<double> results;
  for (auto row = values.begin(); row < values.end(); row += x.shape()[1])
    results.push_back(of_row(by, {row, row + x.shape()[1]}));
  return rounded_to(results, {x.shape()[0]}, x.dtype());
}

/// Every third row consists of zeros of both signs.
tensor rows_of_numbers(const shape& extents, dtype type) {
  auto values = values_of(random_tensor(extents, "x"));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i / static_cast<std::size_t>(extents[1]) % 3 == 1) values[i] = std::copysign(0.0, values[i]);
  return rounded_to(values, extents, type);
}

}  // namespace

TEST_CASE("GPUs: rows are reduced in the order of 256 threads, aligned or not") {
  auto gpu = first_gpu();
  for (auto type : floating_types)
    for (std::int64_t size : {2,   3,   4,   7,   8,    9,    31,   32,   33,   200,   255,   256,  257,
                              260, 511, 768, 769, 1024, 2047, 2048, 2049, 2056, 16384, 16385, 40000})
      for (std::int64_t offset : {0, 1}) {
        auto rows = rows_of_numbers({size > 3000 ? 2 : 5, size}, type);
        auto count = rows.num_elements();
        auto place = tensor::empty({count + offset}, type, gpu).rows(offset, count).reshape(rows.shape());
        place.copy_from(rows);
        for (const auto& each : operations) {
          CAPTURE(to_string(type), size, offset);
          REQUIRE(same_bits(each.reduce(place, {{1}}), expected(each, rows)));
        }
      }
}
