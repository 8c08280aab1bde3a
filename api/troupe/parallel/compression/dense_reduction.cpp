#include "troupe/parallel/compression/dense_reduction.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe {
namespace {

class dense_reduction : public bucket_reduction {
 public:
  explicit dense_reduction(work summed) : summed_(std::move(summed)) {}
  bool proceed() override {
    summed_.wait();
    return false;
  }

 private:
  work summed_;
};

}  // namespace

std::unique_ptr<bucket_reduction> all_reduce_dense(gradient_bucket& bucket, communicator& group) {
  sum_leaves(bucket);
  return std::make_unique<dense_reduction>(group.all_reduce(bucket.sum));
}

void sum_in_tree(const std::vector<tensor>& of_replicas) {
  std::vector<const std::byte*> inputs;
  for (const auto& each : of_replicas) inputs.push_back(each.bytes().data());
  auto first = of_replicas.front();
  std::byte* output = first.bytes().data();
  tree_reduce(inputs, {&output, 1}, first.num_elements(), dtype::f32, reduce_op::sum);
}

void require_on_cpu(const gradient_bucket& bucket, const char* function) {
  if (bucket.sum.device() != device{})
    throw_invalid(function, "gradients in CPU memory", describe(bucket.sum));
}

}  // namespace troupe
