#include "troupe/collective/leaves/leaf_accumulator.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// left += right, as the tree does it.
void combine(tensor& left, const tensor& right) {
  std::array<const std::byte*, 2> inputs{std::as_const(left).bytes().data(), right.bytes().data()};
  reduce_node(inputs, left.bytes().data(), left.num_elements(), dtype::f32, reduce_op::sum);
}

/// The gradient itself if it is f32.
tensor widened(const tensor& gradient) {
  if (gradient.dtype() == dtype::f32) return gradient;
  auto result = tensor::empty(gradient.shape());
  widen_leaf(gradient.bytes().data(), result.bytes().data(), gradient.num_elements(), gradient.dtype());
  return result;
}

void require_gradient(const tensor& gradient, std::int64_t num_elements) {
  bool fits = gradient.defined() && is_floating(gradient.dtype()) && gradient.device() == device{} &&
              gradient.num_elements() == num_elements;
  if (!fits)
    throw_invalid("leaf_accumulator::add",
                  std::to_string(num_elements) + " elements of f32, bf16 or f16 on the CPU",
                  describe(gradient));
}

tensor checked_nodes(tensor given, std::int64_t num_nodes, std::int64_t num_elements) {
  if (num_elements < 0) throw_invalid("leaf_accumulator", "num_elements >= 0", std::to_string(num_elements));
  if (num_nodes == 0) return {};
  if (!given.defined()) return tensor::empty({num_nodes, num_elements});
  bool fits = given.dtype() == dtype::f32 && given.device() == device{} &&
              given.num_elements() == num_nodes * num_elements;
  if (!fits)
    throw_invalid("leaf_accumulator",
                  "f32[" + std::to_string(num_nodes) + ", " + std::to_string(num_elements) +
                      "] on the CPU for the member's nodes",
                  describe(given));
  return given.reshape({num_nodes, num_elements});
}

}  // namespace

leaf_accumulator::leaf_accumulator(const leaf_hosting& hosting, member_index member,
                                   std::int64_t num_elements, tensor nodes)
    : num_elements_(num_elements) {
  auto own = hosting.nodes_of(member);
  nodes_ = checked_nodes(std::move(nodes), static_cast<std::int64_t>(own.size()), num_elements);
  for (std::size_t i = 0; i < own.size(); ++i) {
    auto first = steps_.size();
    append_steps(own[i], steps_);
    steps_[first].row = static_cast<int>(i);
  }
}

/// The last leaf of an inner node completes it.
void leaf_accumulator::append_steps(const tree_node& node, std::vector<step>& steps) {
  if (node.count == 1) return steps.push_back({.leaf = node.first});
  auto left = left_child_count(node.count);
  append_steps({node.first, left}, steps);
  append_steps({node.first + left, node.count - left}, steps);
  ++steps.back().num_merges;
}

const leaf_accumulator::step& leaf_accumulator::require_next(int leaf) const {
  if (!is_complete() && steps_[num_added_].leaf == leaf) return steps_[num_added_];
  auto added = std::span(steps_).first(num_added_);
  bool is_twice = std::ranges::find(added, leaf, &step::leaf) != added.end();
  throw_invalid("leaf_accumulator::add",
                is_complete() ? "no leaf after the member's " + std::to_string(steps_.size())
                              : "leaf " + std::to_string(steps_[num_added_].leaf) + " next",
                "leaf " + std::to_string(leaf) + (is_twice ? ", which has been added" : ""));
}

void leaf_accumulator::add(int leaf, const tensor& gradient) {
  const auto& next = require_next(leaf);
  require_gradient(gradient, num_elements_);
  if (next.num_merges == 0) {
    auto sum = next.row >= 0 ? row(next.row) : tensor::empty({num_elements_});
    widen_leaf(gradient.bytes().data(), sum.bytes().data(), num_elements_, gradient.dtype());
    sums_.push_back(std::move(sum));
  } else {
    combine(sums_.back(), widened(gradient));
    for (int i = 1; i < next.num_merges; ++i) {
      auto right = std::move(sums_.back());
      sums_.pop_back();
      combine(sums_.back(), right);
    }
  }
  ++num_added_;
}

const tensor& leaf_accumulator::nodes() const {
  if (!is_complete())
    throw std::logic_error("[leaf_accumulator::nodes] expected all " + std::to_string(steps_.size()) +
                           " leaves to be added, got none after " + std::to_string(num_added_) +
                           " of them: leaf " + std::to_string(steps_[num_added_].leaf) + " is next");
  return nodes_;
}

void leaf_accumulator::restart() {
  sums_.clear();
  num_added_ = 0;
}

tensor leaf_accumulator::row(int index) const { return nodes_.rows(index, 1).reshape({num_elements_}); }

}  // namespace troupe
