#include "snapshot/tensor_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T>
double number_of(T value) {
  return static_cast<double>(value);
}
double number_of(bfloat16 value) { return static_cast<float>(value); }
double number_of(float16 value) { return static_cast<float>(value); }

template <class T>
tensor_statistics statistics_of_values(std::span<const T> values) {
  double sum = 0, sum_of_squares = 0;
  tensor_statistics found{infinity, -infinity, not_a_number, not_a_number, 0};
  for (auto value : values) {
    auto number = number_of(value);
    if (std::isnan(number)) {
      ++found.num_nan;
      continue;
    }
    found.min = std::min(found.min, number);
    found.max = std::max(found.max, number);
    sum += number;
    sum_of_squares += number * number;
  }
  auto count = static_cast<double>(values.size()) - static_cast<double>(found.num_nan);
  if (count == 0) return {not_a_number, not_a_number, not_a_number, not_a_number, found.num_nan};
  found.mean = sum / count;
  found.rms = std::sqrt(sum_of_squares / count);
  return found;
}

}  // namespace

tensor_statistics statistics_of(const tensor& value) {
  switch (value.dtype()) {
    case dtype::f32:
      return statistics_of_values(value.values<float>());
    case dtype::u8:
      return statistics_of_values(value.values<std::uint8_t>());
    case dtype::i32:
      return statistics_of_values(value.values<std::int32_t>());
    case dtype::i64:
      return statistics_of_values(value.values<std::int64_t>());
    case dtype::bf16:
      return statistics_of_values(value.values<bfloat16>());
    case dtype::f16:
      return statistics_of_values(value.values<float16>());
    case dtype::boolean:
      return statistics_of_values(value.values<bool>());
  }
  return {not_a_number, not_a_number, not_a_number, not_a_number, 0};
}

}  // namespace troupe
