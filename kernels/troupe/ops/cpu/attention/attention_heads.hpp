#pragma once
#include "troupe/ops/attention.hpp"

namespace troupe::cpu {

/// The columns of one head in a matrix whose rows are positions.
struct head_columns {
  std::int64_t first = 0;   ///< the element at position 0
  std::int64_t stride = 0;  ///< elements from one position to the next
  std::int64_t num_positions = 0, width = 0;
};

/// The positions of one head's rows in qkv, dqkv, out and dout.
struct head_place {
  /// `index` counts the pairs of sequence and head, sequences first.
  head_place(const tensor& out, const attention_options& options, std::int64_t index);
  head_columns query, key, value, out;
};

/// One head's rows as f32: in place if they are f32, else a converted copy.
class head_rows {
 public:
  head_rows(const tensor& from, const head_columns& columns);
  const float* row(std::int64_t position) const { return elements_ + position * stride_; }
  std::int64_t stride() const { return stride_; }

 private:
  tensor converted_;
  const float* elements_;
  std::int64_t stride_;
};

/// One head's rows as f32, transposed: [width, positions], zero-padded to a multiple of the vector width.
class transposed_rows {
 public:
  transposed_rows(const head_rows& rows, const head_columns& columns);
  const float* column(std::int64_t position) const { return elements_ + position; }
  std::int64_t stride() const { return stride_; }
  /// `count` rounded up to a multiple of the vector width.
  static std::int64_t in_vectors(std::int64_t count) { return (count + 15) / 16 * 16; }

 private:
  tensor transposed_;
  float* elements_;
  std::int64_t stride_;
};

/// Uninitialised f32 output rows of one head: in place if the tensor is f32, else a buffer that `finish`
/// converts and stores.
class head_sums {
 public:
  head_sums(tensor& to, const head_columns& columns);
  float* row(std::int64_t position) { return elements_ + position * stride_; }
  std::int64_t stride() const { return stride_; }
  void finish();

 private:
  tensor to_, sums_;
  head_columns columns_;
  float* elements_;
  std::int64_t stride_;
};

}  // namespace troupe::cpu
