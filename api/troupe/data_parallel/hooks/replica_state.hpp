#pragma once
#include <functional>
#include <string>
#include <vector>

#include "troupe/data_parallel/comm_hook.hpp"

namespace troupe {

/// A state of each virtual replica of this member with one f32 element per gradient element, for example a
/// residual (error feedback) or a velocity. Initially zero.
class replica_state {
 public:
  /// `name` is part of the names of the tensors in a snapshot.
  explicit replica_state(std::string name) : name_(std::move(name)) {}

  /// Allocates the state for the parts of these buckets for which `is_selected` returns true; for all parts
  /// if it is null.
  void prepare(const std::vector<gradient_bucket>& buckets,
               const std::function<bool(const bucket_part&)>& is_selected = nullptr);
  /// The state for one leaf of one bucket: f32 [n], with the layout of the leaf.
  const tensor& of(const gradient_bucket& bucket, std::size_t leaf) const;
  /// Appends handles per replica and parameter, named "replica.3/NAME/2.weight" and of the parameter's shape,
  /// which do not depend on the bucket plan.
  void add_state(std::vector<named_tensor>& to) const;

 private:
  std::string name_;
  std::vector<std::vector<tensor>> values_;  // by bucket and leaf
  std::vector<named_tensor> state_;
};

/// A view of the elements of `leaf` that belong to `part`, in the part's shape.
tensor part_of(const tensor& leaf, const bucket_part& part);

}  // namespace troupe
