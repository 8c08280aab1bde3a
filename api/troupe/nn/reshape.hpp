#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// [B, ...] to [B, extents...]: the same elements.
class Reshape : public module_of<Reshape> {
 public:
  explicit Reshape(shape extents) : extents_(std::move(extents)) {}
  variable forward(const variable& input) override {
    std::vector<std::int64_t> all{input.value.shape()[0]};
    all.insert(all.end(), extents_.extents().begin(), extents_.extents().end());
    return reshape(input, shape(std::move(all)));
  }

 private:
  shape extents_;
};

}  // namespace troupe::nn
