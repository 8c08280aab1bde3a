#include "troupe/ops/rearrange.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/one_input.hpp"

namespace troupe {
namespace {

class concat_operation : public operation {
 public:
  concat_operation(int axis, std::vector<std::int64_t> counts) : axis_(axis), counts_(std::move(counts)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return split(dy, axis_, counts_); }

 private:
  int axis_;
  std::vector<std::int64_t> counts_;
};

std::vector<int> without_negatives(std::vector<int> axes) {
  for (auto& axis : axes)
    if (axis < 0) axis += static_cast<int>(axes.size());
  return axes;
}

}  // namespace

variable concat(const std::vector<variable>& parts, int axis) {
  std::vector<tensor> values;
  for (const auto& part : parts) values.push_back(part.value);
  auto y = concat(values, axis);
  std::vector<std::int64_t> counts;
  for (const auto& value : values) counts.push_back(value.shape()[axis]);
  return record(y, parts, std::make_unique<concat_operation>(axis, std::move(counts)));
}

std::vector<variable> split(const variable& x, int axis, const std::vector<std::int64_t>& counts) {
  std::vector<variable> parts;
  std::int64_t first = 0;
  for (auto& value : split(x.value, axis, counts)) {
    auto count = value.shape()[axis];
    parts.push_back(record_one_input(x, value, [extents = x.value.shape(), axis, first](const tensor& dy) {
      return slice_backward(dy, extents, axis, first);
    }));
    first += count;
  }
  return parts;
}

variable slice(const variable& x, int axis, std::int64_t first, std::int64_t count) {
  return record_one_input(x, slice(x.value, axis, first, count),
                          [extents = x.value.shape(), axis, first](const tensor& dy) {
                            return slice_backward(dy, extents, axis, first);
                          });
}

variable transpose(const variable& x, const std::vector<int>& axes) {
  return record_one_input(x, transpose(x.value, axes),
                          [back = inverse_permutation(without_negatives(axes))](const tensor& dy) {
                            return transpose(dy, back);
                          });
}

variable transpose(const variable& x) {
  return record_one_input(x, transpose(x.value), [](const tensor& dy) { return transpose(dy); });
}

}  // namespace troupe
