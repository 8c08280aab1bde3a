#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "troupe/autograd/functions.hpp"
#include "troupe/nn/multi_module.hpp"

namespace troupe::nn {

// Nodes of a Graph where branches meet or part. Shapes and errors are those of the functions of the same
// names in troupe/autograd/functions.hpp.

/// The sum of one or more values, the first two first.
class Add : public multi_module_of<Add> {
 public:
  int num_inputs() const override { return any_number; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override;
};

/// The product of one or more values, the first two first: gates, masks.
class Multiply : public multi_module_of<Multiply> {
 public:
  int num_inputs() const override { return any_number; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override;
};

/// Concatenates one or more values along an axis; 1 is the channels of images. Floating dtypes that differ,
/// as in mixed precision, become f32.
class Concat : public multi_module_of<Concat> {
 public:
  explicit Concat(int axis = 1) : axis_(axis) {}
  int num_inputs() const override { return any_number; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override;

 private:
  int axis_;
};

/// Splits a value along an axis into parts of the extents `counts`, an output each.
class Split : public multi_module_of<Split> {
 public:
  /// Throws std::invalid_argument for no parts.
  explicit Split(std::vector<std::int64_t> counts, int axis = 1);
  int num_inputs() const override { return 1; }
  int num_outputs() const override { return static_cast<int>(counts_.size()); }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override;

 private:
  std::vector<std::int64_t> counts_;
  int axis_;
};

}  // namespace troupe::nn
