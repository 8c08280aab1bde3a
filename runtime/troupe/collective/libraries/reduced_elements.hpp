#pragma once
#include "troupe/collective/calls/operation.hpp"

namespace troupe::collective {

/// Reductions by libraries that do not know bf16 and f16: they reduce f32 copies, which are rounded once at
/// the end. CPU memory. Apart from library_backend, since NCCL's backend links no operations of tensors.
class reduced_elements {
 public:
  /// x itself, or a copy of its elements as f32.
  static tensor widened(const tensor& x);
  /// The dtype in which elements of `type` are reduced.
  static dtype reduction_type(dtype type) { return is_floating(type) ? dtype::f32 : type; }
  /// f32 elements as i32 in the same order, in which the largest (max) or the least (min) number stands for
  /// NaN. The maximum and minimum of a library's floats may leave NaN out, those of integers do not.
  static tensor ordered_keys(const tensor& x, reduce_op op);
  /// The f32 elements of these keys.
  static tensor from_ordered_keys(const tensor& keys);
  /// Writes the reduced elements to `result`: divides a sum by n if the mean is wanted, then rounds.
  static void finish(tensor reduced, reduce_op op, int num_members, tensor result);
};

}  // namespace troupe::collective
