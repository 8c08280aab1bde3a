#include "troupe/parallel/compression/rounded_gradients.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/parallel/compression/dense_reduction.hpp"

namespace troupe {
namespace {

/// One leaf for each member: the group sums bf16 and f16 in f32, and rounds at the root.
class one_leaf : public bucket_reduction {
 public:
  one_leaf(gradient_bucket& bucket, communicator& group, dtype type)
      : bucket_(bucket), rounded_(cast(bucket.leaves.front(), type)), summed_(group.all_reduce(rounded_)) {}
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

std::vector<std::int64_t> nearly_equal_parts(std::int64_t count, int num_members) {
  std::vector<std::int64_t> parts;
  for (std::int64_t i = 0; i < num_members; ++i)
    parts.push_back(count * (i + 1) / num_members - count * i / num_members);
  return parts;
}

/// Several leaves: what a member sends is an inner node of the tree, f32. Only the root's parts, which come
/// back, are rounded.
class several_leaves : public bucket_reduction {
 public:
  several_leaves(gradient_bucket& bucket, communicator& group, dtype type)
      : bucket_(bucket), group_(group), type_(type) {
    for (auto& leaf : bucket.leaves) leaf.copy_from(cast(cast(leaf, type), dtype::f32));
    sum_leaves(bucket);
    parts_ = nearly_equal_parts(bucket.sum.num_elements(), group.size());
    own_ = tensor::empty({parts_[static_cast<std::size_t>(group.rank())]});
    round_ = group.reduce_scatter(bucket.sum, own_, parts_);
  }
  bool proceed() override {
    round_.wait();
    if (rounded_.defined()) {
      bucket_.sum.copy_from(cast(rounded_, dtype::f32));
      return false;
    }
    rounded_ = tensor::empty(bucket_.sum.shape(), type_);
    own_ = cast(own_, type_);
    round_ = group_.all_gather(own_, rounded_, parts_);
    return true;
  }

 private:
  gradient_bucket& bucket_;
  communicator& group_;
  dtype type_;
  std::vector<std::int64_t> parts_;  // elements whose root each member sums
  tensor own_;
  tensor rounded_;  // all parts, in the second round
  work round_;
};

}  // namespace

rounded_gradients::rounded_gradients(dtype type) : type_(type) {
  if (type != dtype::bf16 && type != dtype::f16)
    throw_invalid("rounded_gradients", "bf16 or f16", to_string(type));
}

void rounded_gradients::prepare(const std::vector<gradient_bucket>& buckets) {
  for (const auto& each : buckets) require_on_cpu(each, "rounded_gradients");
}

std::unique_ptr<bucket_reduction> rounded_gradients::begin(gradient_bucket& bucket, communicator& group) {
  if (bucket.leaves.size() == 1) return std::make_unique<one_leaf>(bucket, group, type_);
  return std::make_unique<several_leaves>(bucket, group, type_);
}

}  // namespace troupe
