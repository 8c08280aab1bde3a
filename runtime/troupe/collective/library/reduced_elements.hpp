#pragma once
#include "troupe/collective/operation.hpp"

namespace troupe {

/// What libraries reduce without knowing bf16 and f16: copies of these in f32, which are rounded once at the
/// end. CPU memory.
class reduced_elements {
 public:
  /// x itself, or its elements as f32.
  static tensor brought(const tensor& x);
  /// In which dtype elements of `type` are reduced.
  static dtype type_of(dtype type) { return is_floating(type) ? dtype::f32 : type; }
  /// The reduced elements as the result: the sum divided by n where the mean is wanted, then rounded.
  static void finish(tensor reduced, reduce_op op, int num_members, tensor result);
};

}  // namespace troupe
