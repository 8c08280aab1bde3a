#include "troupe/data_parallel/hooks/half_precision_gradients.hpp"

#include "troupe/data_parallel/detail/dense_reduction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/gradients/replica_sum.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

class rounded_reduction : public bucket_reduction {
 public:
  rounded_reduction(gradient_bucket& bucket, tensor rounded, work summed)
      : bucket_(bucket), rounded_(std::move(rounded)), summed_(std::move(summed)) {}
  bool proceed() override {
    summed_.wait();
    bucket_.sum.copy_from(cast(rounded_, dtype::f32));
    return false;
  }

 private:
  gradient_bucket& bucket_;
  tensor rounded_;
  work summed_;
};

/// Each member sends its leaf in 16 bits.
std::unique_ptr<bucket_reduction> reduce_rounded(gradient_bucket& bucket, communicator& group, dtype type) {
  auto rounded = cast(bucket.leaves.front(), type);
  auto summed = group.all_reduce(rounded);
  return std::make_unique<rounded_reduction>(bucket, std::move(rounded), std::move(summed));
}

/// Each member sends its nodes of the tree in f32, and gets the sums in 16 bits.
std::unique_ptr<bucket_reduction> reduce_nodes(gradient_bucket& bucket, communicator& group, dtype type) {
  for (auto& leaf : bucket.leaves) leaf.copy_from(cast(cast(leaf, type), dtype::f32));
  auto rounded = tensor::empty(bucket.sum.shape(), type);
  auto summed = gradients::all_reduce_replicas(bucket.leaves, rounded, *bucket.replicas, group);
  return std::make_unique<rounded_reduction>(bucket, std::move(rounded), std::move(summed));
}

}  // namespace

half_precision_gradients::half_precision_gradients(dtype type) : type_(type) {
  if (type != dtype::bf16 && type != dtype::f16)
    throw_invalid("half_precision_gradients", "bf16 or f16", to_string(type));
}

void half_precision_gradients::prepare(const std::vector<gradient_bucket>& buckets) {
  for (const auto& each : buckets) detail::require_on_cpu(each, "half_precision_gradients");
}

std::unique_ptr<bucket_reduction> half_precision_gradients::begin(gradient_bucket& bucket,
                                                                  communicator& group) {
  bool is_one_leaf_each =
      bucket.leaves.size() == 1 && gradients::is_plain_all_reduce(*bucket.replicas, group);
  return is_one_leaf_each ? reduce_rounded(bucket, group, type_) : reduce_nodes(bucket, group, type_);
}

}  // namespace troupe
