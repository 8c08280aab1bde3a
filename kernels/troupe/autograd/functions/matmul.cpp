#include "troupe/ops/matmul.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/ops/rearrange.hpp"

namespace troupe {
namespace {

/// All matrices of the batch as one, with their rows concatenated.
tensor rows_of(const tensor& matrices) {
  auto columns = matrices.shape()[-1];
  std::int64_t rows = 1;
  for (int axis = 0; axis < matrices.shape().rank() - 1; ++axis) rows *= matrices.shape()[axis];
  return matrices.reshape({rows, columns});
}

class matmul_operation : public operation {
 public:
  matmul_operation(const variable& a, const variable& b, const matmul_options& options)
      : a_(a.value),
        b_(b.value),
        options_(options),
        a_wanted_(a.requires_gradient()),
        b_wanted_(b.requires_gradient()) {}

  std::vector<tensor> backward_input(const tensor& dc) override {
    return {a_wanted_ ? left_gradient(dc) : tensor(), b_wanted_ ? right_gradient(dc) : tensor()};
  }

 private:
  bool one_for_all() const { return b_.shape().rank() == 2 && a_.shape().rank() > 2; }

  /// da = dc b^T, or its transpose.
  tensor left_gradient(const tensor& dc) const {
    if (!options_.transpose_a) return matmul(dc, b_, {.transpose_b = !options_.transpose_b});
    if (one_for_all()) return transpose(matmul(dc, b_, {.transpose_b = !options_.transpose_b}));
    return matmul(b_, dc, {.transpose_a = options_.transpose_b, .transpose_b = true});
  }

  /// db = a^T dc, or its transpose; summed over all pairs where they share b.
  tensor right_gradient(const tensor& dc) const {
    if (one_for_all()) return product(rows_of(options_.transpose_a ? transpose(a_) : a_), false, rows_of(dc));
    return product(a_, options_.transpose_a, dc);
  }
  tensor product(const tensor& a, bool a_is_transposed, const tensor& dc) const {
    if (options_.transpose_b) return matmul(dc, a, {.transpose_a = true, .transpose_b = a_is_transposed});
    return matmul(a, dc, {.transpose_a = !a_is_transposed});
  }

  tensor a_, b_;
  matmul_options options_;
  bool a_wanted_, b_wanted_;
};

}  // namespace

variable matmul(const variable& left, const variable& right, const matmul_options& options) {
  auto a = in_compute_dtype(left), b = in_compute_dtype(right);
  auto c = matmul(a.value, b.value, options);
  if (!would_record({&a, &b})) return {std::move(c)};
  return record(std::move(c), {a, b}, std::make_unique<matmul_operation>(a, b, options));
}

}  // namespace troupe
