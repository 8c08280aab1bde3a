#include "troupe/ops/cpu/reductions/reductions.hpp"

#include <bit>
#include <vector>

#include "troupe/ops/cpu/loops/f64_sums.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe::cpu {
namespace {

using block_floats = std::array<float, block_elements>;

/// Elements that one thread goes over at a time.
constexpr std::int64_t part_elements = squares_block_elements;
static_assert(part_elements % block_elements == 0);

/// A part of a tensor and its result.
struct part {
  const tensor* x;
  std::int64_t first, count;
  double result;
};

/// Calls `run(tensor, first, count)` for blocks of all tensors and returns each part's results, added, in
/// order. The results are in thread-local memory that is valid until the next call.
template <class Run>
std::span<const part> over_blocks(std::span<const tensor> tensors, const Run& run) {
  thread_local std::vector<part> memory;
  memory.clear();
  std::int64_t elements = 0;
  for (const auto& each : tensors) {
    elements += each.num_elements();
    for (std::int64_t first = 0; first < each.num_elements(); first += part_elements)
      memory.push_back({&each, first, std::min(part_elements, each.num_elements() - first), 0});
  }
  std::span<part> parts = memory;
  parallel_for(static_cast<std::int64_t>(parts.size()), elements, [&](std::int64_t index) {
    auto& each = parts[static_cast<std::size_t>(index)];
    for (std::int64_t done = 0; done < each.count; done += block_elements)
      each.result += run(*each.x, each.first + done, std::min(block_elements, each.count - done));
  });
  return parts;
}

double added(std::span<const part> parts) {
  double sum = 0;
  for (const auto& each : parts) sum += each.result;
  return sum;
}

/// `sum(elements, count)` of blocks of all tensors.
std::span<const part> parts_of(std::span<const tensor> tensors,
                               double (*sum)(const float* x, std::int64_t size)) {
  return over_blocks(tensors, [sum](const tensor& from, std::int64_t first, std::int64_t count) {
    alignas(64) block_floats scratch;
    return sum(read_block(from, first, count, scratch), count);
  });
}

double sum_over(std::span<const tensor> tensors, double (*sum)(const float* x, std::int64_t size)) {
  return added(parts_of(tensors, sum));
}

[[gnu::always_inline]] inline std::int32_t is_infinite_or_nan(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000) == 0x7f800000 ? 1 : 0;
}

TROUPE_CLONES double count_not_finite(const float* x, std::int64_t size) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < size; ++i) count += is_infinite_or_nan(x[i]);
  return count;
}

/// Returns how many products are not finite.
TROUPE_CLONES double multiply(float* x, std::int64_t size, float factor) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    x[i] *= factor;
    count += is_infinite_or_nan(x[i]);
  }
  return count;
}

/// Returns how many are not finite afterwards, as they are stored.
double scale_block(tensor x, std::int64_t first, std::int64_t count, float factor) {
  alignas(64) block_floats scratch;
  read_block(x, first, count, scratch);
  auto* values = block_to_write(x, first, scratch);
  auto not_finite = multiply(values, count, factor);
  if (x.dtype() == dtype::f32) return not_finite;
  write_block(x, first, count, values);
  return count_not_finite(read_block(x, first, count, scratch), count);
}

}  // namespace

double total_sum(const tensor& x) { return sum_over(std::span(&x, 1), sum_of); }

double sum_of_squares(std::span<const tensor> tensors) { return sum_over(tensors, sum_of_squares); }

std::vector<double> block_squares(std::span<const tensor> tensors) {
  std::vector<double> squares;
  for (const auto& each : parts_of(tensors, sum_of_squares)) squares.push_back(each.result);
  return squares;
}

double sum_of_squared_differences(const tensor& a, const tensor& b) {
  return added(
      over_blocks(std::span(&a, 1), [&b](const tensor& from, std::int64_t first, std::int64_t count) {
        alignas(64) block_floats left, right;
        return sum_of_squared_differences(read_block(from, first, count, left),
                                          read_block(b, first, count, right), count);
      }));
}

bool all_finite(std::span<const tensor> tensors) { return sum_over(tensors, count_not_finite) == 0; }

bool scale_all(std::span<const tensor> tensors, float factor) {
  return added(over_blocks(tensors, [factor](const tensor& x, std::int64_t first, std::int64_t count) {
           return scale_block(x, first, count, factor);
         })) == 0;
}

}  // namespace troupe::cpu
