#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <span>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "troupe/ops/reduction.hpp"

// Reductions on a GPU have one order, whatever the dtype and the alignment. For rows it is that of 256
// threads, each of which combines every 256th element of a part of 16384, and of halves of their results. The
// elements of a column are combined in order in parts of 256.

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::size_t row_part = 16384, column_part = 256, num_threads = 256;

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

float of_row_part(const operation& by, std::span<const float> x) {
  std::array<float, num_threads> results;
  results.fill(by.neutral);
  for (std::size_t i = 0; i < x.size(); ++i)
    results[i % num_threads] = by.combine(results[i % num_threads], x[i]);
  fold(by, results, 1, 32);
  fold(by, results, 32, 8);
  return results[0];
}

float of_column_part(const operation& by, std::span<const float> x) {
  auto result = by.neutral;
  for (auto element : x) result = by.combine(result, element);
  return result;
}

/// Of a row or column, in parts of `part_size`.
float in_parts(const operation& by, std::vector<float> x, std::size_t part_size,
               float (*of_part)(const operation& by, std::span<const float> x)) {
  do {
    std::vector<float> results;
    for (std::size_t first = 0; first < x.size(); first += part_size)
      results.push_back(of_part(by, std::span(x).subspan(first, std::min(part_size, x.size() - first))));
    x = results;
  } while (x.size() > 1);
  return x[0];
}

/// Of [outer, count, inner] along axis 1.
tensor expected(const operation& by, const tensor& x) {
  auto values = values_of(x);
  auto outer = x.shape()[0], count = x.shape()[1], inner = x.shape()[2];
  std::vector<double> results;
  for (std::int64_t at = 0; at < outer * inner; ++at) {
    std::vector<float> line;
    for (std::int64_t i = 0; i < count; ++i)
      line.push_back(static_cast<float>(
          values[static_cast<std::size_t>((at / inner * count + i) * inner + at % inner)]));
    results.push_back(inner == 1 ? in_parts(by, line, row_part, of_row_part)
                                 : in_parts(by, line, column_part, of_column_part));
  }
  return rounded_to(results, {outer, inner}, x.dtype());
}

/// [outer, count, inner]; every third row or column consists of zeros of both signs.
tensor numbers(const shape& extents, dtype type) {
  auto values = values_of(random_tensor(extents, "x"));
  auto count = static_cast<std::size_t>(extents[1]), inner = static_cast<std::size_t>(extents[2]);
  for (std::size_t i = 0; i < values.size(); ++i)
    if ((i / inner / count + i % inner) % 3 == 1) values[i] = std::copysign(0.0, values[i]);
  return rounded_to(values, extents, type);
}

/// Requires the bits of this order for x with its first element `offset` elements behind an aligned place.
void require_order(const tensor& x, std::int64_t offset) {
  auto count = x.num_elements();
  auto place = tensor::empty({count + offset}, x.dtype(), first_gpu()).rows(offset, count).reshape(x.shape());
  place.copy_from(x);
  for (const auto& each : operations) {
    CAPTURE(describe(x), offset);
    REQUIRE(same_bits(each.reduce(place, {{1}}), expected(each, x)));
  }
}

}  // namespace

TEST_CASE("GPUs: rows are reduced in the order of 256 threads, aligned or not") {
  for (auto type : floating_types)
    for (std::int64_t size : {2,   3,   4,   7,   8,    9,    31,   32,   33,   200,   255,   256,  257,
                              260, 511, 768, 769, 1024, 2047, 2048, 2049, 2056, 16384, 16385, 40000})
      for (std::int64_t offset : {0, 1}) require_order(numbers({size > 3000 ? 2 : 5, size, 1}, type), offset);
}

TEST_CASE("GPUs: columns are reduced in order in parts of 256, aligned or not") {
  for (auto type : floating_types)
    for (std::int64_t inner : {2, 3, 4, 130})
      for (std::int64_t size : {1, 2, 7, 8, 9, 56, 63, 64, 65, 127, 129, 256, 257, 600})
        for (std::int64_t offset : {0, 1}) require_order(numbers({2, size, inner}, type), offset);
}

TEST_CASE("GPUs: columns enough for packs of 16 bytes are reduced in the same order") {
  for (auto type : floating_types) {
    auto inner = (1 << 19) / static_cast<std::int64_t>(size_bytes(type));
    require_order(numbers({1, 19, inner}, type), 0);
    require_order(numbers({1, 3, inner}, type), 1);
    require_order(numbers({1, 3, inner + 2}, type), 0);
  }
}
