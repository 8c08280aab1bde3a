#include "troupe/ops/pooling.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class max_pool_operation : public operation {
 public:
  max_pool_operation(tensor indices, shape extents, const pool2d_options& options)
      : indices_(std::move(indices)), extents_(std::move(extents)), options_(options) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {max_pool2d_backward(dy, indices_, extents_, options_)};
  }

 private:
  tensor indices_;
  shape extents_;
  pool2d_options options_;
};

class avg_pool_operation : public operation {
 public:
  avg_pool_operation(shape extents, const pool2d_options& options)
      : extents_(std::move(extents)), options_(options) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {avg_pool2d_backward(dy, extents_, options_)};
  }

 private:
  shape extents_;
  pool2d_options options_;
};

class global_avg_pool_operation : public operation {
 public:
  explicit global_avg_pool_operation(shape extents) : extents_(std::move(extents)) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {global_avg_pool_backward(dy, extents_)};
  }

 private:
  shape extents_;
};

}  // namespace

variable max_pool2d(const variable& x, const pool2d_options& options) {
  auto made = max_pool2d_forward(x.value, options);
  if (!would_record({&x})) return {made.y};
  return record(made.y, {x}, std::make_unique<max_pool_operation>(made.indices, x.value.shape(), options));
}

variable avg_pool2d(const variable& x, const pool2d_options& options) {
  return record(avg_pool2d_forward(x.value, options), {x},
                std::make_unique<avg_pool_operation>(x.value.shape(), options));
}

variable global_avg_pool(const variable& x) {
  return record(global_avg_pool_forward(x.value), {x},
                std::make_unique<global_avg_pool_operation>(x.value.shape()));
}

}  // namespace troupe
