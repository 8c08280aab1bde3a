#include "troupe/data_parallel/detail/dense_reduction.hpp"

#include "troupe/error/errors.hpp"

namespace troupe::detail {
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
  return std::make_unique<dense_reduction>(all_reduce_leaves(bucket, group));
}

void require_on_cpu(const gradient_bucket& bucket, const char* function) {
  if (bucket.sum.device() != device{})
    throw_invalid(function, "gradients in CPU memory", describe(bucket.sum));
}

}  // namespace troupe::detail
