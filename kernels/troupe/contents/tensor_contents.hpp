#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/contents/box.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Which elements of one of the model's tensors a part holds: of a list of boxes, in whose order the elements
/// are stored, each box in row-major order, a range. By name and boxes a part is loaded whatever layout the
/// job has that loads it.
struct tensor_contents {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::int64_t> whole;        ///< the extents of the model's tensor
  std::vector<box> boxes;                 ///< disjoint
  std::int64_t begin = 0, end = 0;        ///< of the boxes' elements those the part holds
  std::optional<std::int32_t> replica{};  ///< the replica that it belongs to; none: all hold it alike
  bool operator==(const tensor_contents&) const = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, type, whole, boxes, begin, end, replica);
  }
};

/// All elements of a tensor.
tensor_contents whole_contents(const named_tensor& held);
tensor_contents whole_contents(std::string name, dtype type, const shape& extents);
std::vector<tensor_contents> whole_contents(std::span<const named_tensor> held);
bool is_whole(const tensor_contents& held);

/// What is wrong with it (too many axes, a box outside the tensor, a range outside the boxes); empty if
/// nothing is. The functions below expect that nothing is.
std::string problem_of(const tensor_contents& held);

/// The shape in which the elements are stored: the extents of a box held as a whole, else one axis.
shape stored_shape(const tensor_contents& held);
/// The elements as disjoint boxes, in the order in which they are stored.
std::vector<box> boxes_held(const tensor_contents& held);

}  // namespace troupe
