#include "troupe/parallel/compression/half_precision_gradients.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/parallel/compression/dense_reduction.hpp"

namespace troupe {
namespace {

/// The reduction if each member has one leaf: an all_reduce in bf16 or f16, which sums in f32 and rounds at
/// the root.
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

/// The reduction if members have several leaves: each member sends its inner node of the tree in f32
/// (reduce_scatter); the sums are rounded before the all_gather.
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

half_precision_gradients::half_precision_gradients(dtype type) : type_(type) {
  if (type != dtype::bf16 && type != dtype::f16)
    throw_invalid("half_precision_gradients", "bf16 or f16", to_string(type));
}

void half_precision_gradients::prepare(const std::vector<gradient_bucket>& buckets) {
  for (const auto& each : buckets) require_on_cpu(each, "half_precision_gradients");
}

std::unique_ptr<bucket_reduction> half_precision_gradients::begin(gradient_bucket& bucket,
                                                                  communicator& group) {
  if (bucket.leaves.size() == 1) return std::make_unique<one_leaf>(bucket, group, type_);
  return std::make_unique<several_leaves>(bucket, group, type_);
}

}  // namespace troupe
