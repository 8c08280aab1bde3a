#include <algorithm>
#include <array>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

/// Indices of either dtype.
class index_list {
 public:
  /// Throws unless each is in [0, num_rows).
  index_list(std::string_view operation, const tensor& indices, std::int64_t num_rows)
      : size_(indices.num_elements()) {
    if (indices.dtype() == dtype::i64)
      wide_ = indices.values<std::int64_t>().data();
    else
      narrow_ = indices.values<std::int32_t>().data();
    for (std::int64_t i = 0; i < size_; ++i)
      if ((*this)[i] < 0 || (*this)[i] >= num_rows)
        throw_invalid(operation, "indices in [0, " + std::to_string(num_rows) + ")",
                      std::to_string((*this)[i]) + " at position " + std::to_string(i));
  }
  std::int64_t operator[](std::int64_t i) const { return wide_ ? wide_[i] : narrow_[i]; }
  std::int64_t size() const { return size_; }

 private:
  const std::int64_t* wide_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
  std::int64_t size_;
};

/// 1 of a shape [N].
std::int64_t row_elements(const tensor& values) {
  std::int64_t elements = 1;
  for (int axis = 1; axis < values.shape().rank(); ++axis) elements *= values.shape()[axis];
  return elements;
}

void gather(std::string_view operation, const tensor& values, const tensor& indices, tensor& out) {
  index_list list(operation, indices, values.shape()[0]);
  auto row_bytes = row_elements(values) * static_cast<std::int64_t>(size_bytes(values.dtype()));
  const auto* from = values.bytes().data();
  auto* to = out.bytes().data();
  parallel_for(list.size(), list.size() * row_elements(values), [&](std::int64_t i) {
    std::copy_n(from + list[i] * row_bytes, row_bytes, to + i * row_bytes);
  });
}

TROUPE_CLONES void add_values(const float* values, float* sum, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] += values[i];
}

/// Columns per strip: one thread adds all rows to a strip, in order.
constexpr std::int64_t strip_columns = 128;

void fill_strip_zero(tensor& sum, std::int64_t columns, std::int64_t first, std::int64_t count) {
  auto* values = sum.values<float>().data();
  for (std::int64_t row = 0; row < sum.shape()[0]; ++row)
    std::fill_n(values + row * columns + first, count, 0.0F);
}

void scatter_add(std::string_view operation, const tensor& indices, const tensor& rows, tensor& sum,
                 gradient_mode mode) {
  index_list list(operation, indices, sum.shape()[0]);
  auto columns = row_elements(sum);
  auto* sums = sum.values<float>().data();
  auto elements = rows.num_elements() + (mode == gradient_mode::assign ? sum.num_elements() : 0);
  parallel_for((columns + strip_columns - 1) / strip_columns, elements, [&](std::int64_t strip) {
    alignas(64) std::array<float, strip_columns> scratch;
    auto first = strip * strip_columns, count = std::min(strip_columns, columns - first);
    if (mode == gradient_mode::assign) fill_strip_zero(sum, columns, first, count);
    for (std::int64_t i = 0; i < list.size(); ++i)
      add_values(read_block(rows, i * columns + first, count, scratch), sums + list[i] * columns + first,
                 count);
  });
}

}  // namespace

row_kernels rows() { return {.gather = gather, .scatter_add = scatter_add}; }

}  // namespace troupe::cpu
