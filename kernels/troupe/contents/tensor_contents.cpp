#include "troupe/contents/tensor_contents.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

/// As many as a message can carry. The functions on boxes recurse over the axes.
constexpr std::size_t most_axes = 255;

}  // namespace

tensor_contents whole_contents(const named_tensor& held) {
  return whole_contents(held.name, held.value.dtype(), held.value.shape());
}

tensor_contents whole_contents(std::string name, dtype type, const shape& extents) {
  return {std::move(name), type, extents.extents(), {whole_box(extents)}, 0, extents.num_elements(), {}};
}

std::vector<tensor_contents> whole_contents(std::span<const named_tensor> held) {
  std::vector<tensor_contents> contents;
  for (const auto& one : held) contents.push_back(whole_contents(one));
  return contents;
}

bool is_whole(const tensor_contents& held) {
  return held.boxes.size() == 1 && held.boxes[0] == whole_box(shape(held.whole)) && held.begin == 0 &&
         held.end == num_elements(held.boxes[0]);
}

std::string problem_of(const tensor_contents& held) {
  try {
    if (held.whole.size() > most_axes)
      return held.name + " has " + std::to_string(held.whole.size()) + " axes, more than " +
             std::to_string(most_axes);
    shape whole(held.whole);
    std::int64_t left = whole.num_elements(), num_held = 0;
    for (const auto& one : held.boxes) {
      if (!is_inside(one, whole))
        return "a box of " + held.name + " is not inside its shape " + to_string(whole);
      if (num_elements(one) > left)
        return "the boxes of " + held.name + " have more elements than its shape " + to_string(whole);
      left -= num_elements(one);
      num_held += num_elements(one);
    }
    if (held.begin < 0 || held.begin > held.end || held.end > num_held)
      return "the elements " + std::to_string(held.begin) + " to " + std::to_string(held.end) + " of " +
             held.name + " are not among the " + std::to_string(num_held) + " of its boxes";
    if (held.replica && *held.replica < 0)
      return held.name + " is of replica " + std::to_string(*held.replica);
    return {};
  } catch (const std::invalid_argument& problem) {
    return held.name + " has no shape: " + problem.what();
  }
}

shape stored_shape(const tensor_contents& held) {
  if (held.boxes.size() == 1 && held.begin == 0 && held.end == num_elements(held.boxes[0]))
    return shape(held.boxes[0].extent);
  return shape({held.end - held.begin});
}

std::vector<box> boxes_held(const tensor_contents& held) {
  std::vector<box> pieces;
  std::int64_t first = 0;  // of the box
  for (const auto& one : held.boxes) {
    auto size = num_elements(one);
    auto begin = std::max<std::int64_t>(held.begin - first, 0), end = std::min(held.end - first, size);
    if (begin < end) std::ranges::move(elements_of(one, begin, end), std::back_inserter(pieces));
    first += size;
  }
  return pieces;
}

}  // namespace troupe
