#pragma once
#include <functional>
#include <string>
#include <vector>

#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

/// What every virtual replica of this member keeps from step to step, element by element of its gradients:
/// what has not been sent yet, or a momentum. f32, zero at first.
class replica_memory {
 public:
  /// `name` says what is kept, in the names of its tensors.
  explicit replica_memory(std::string name) : name_(std::move(name)) {}

  /// Memory for the parts of these buckets that `is_kept` holds for; all of them if it is null.
  void prepare(const std::vector<gradient_bucket>& buckets,
               const std::function<bool(const bucket_part&)>& is_kept = nullptr);
  /// Of one bucket and one of its leaves: f32 [n], laid out as the leaf is.
  const tensor& of(const gradient_bucket& bucket, std::size_t leaf) const;
  /// Adds live handles by replica and parameter, "replica.3/NAME/2.weight", of the parameter's shape: they do
  /// not depend on buckets.
  void add_state(std::vector<named_tensor>& to) const;

 private:
  std::string name_;
  std::vector<std::vector<tensor>> values_;  // by bucket and leaf
  std::vector<named_tensor> state_;
};

/// Elements of `leaf` that belong to a part, sharing them, in its shape.
tensor part_of(const tensor& leaf, const bucket_part& part);

}  // namespace troupe
