#include "troupe/collective/calls/leaf_accumulator.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

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
  if (given.dtype() != dtype::f32 || given.num_elements() != num_nodes * num_elements)
    throw_invalid(
        "leaf_accumulator",
        "f32[" + std::to_string(num_nodes) + ", " + std::to_string(num_elements) + "] for the member's nodes",
        describe(given));
  return given.reshape({num_nodes, num_elements});
}

}  // namespace

void leaf_accumulator::add_on_cpu(tensor& left, const tensor& right) {
  std::array<const std::byte*, 2> inputs{std::as_const(left).bytes().data(), right.bytes().data()};
  reduce_node(inputs, left.bytes().data(), left.num_elements(), dtype::f32, reduce_op::sum);
}

leaf_accumulator::leaf_accumulator(const logical_rank_map& map, member_index member,
                                   std::int64_t num_elements, tensor nodes, addition add)
    : num_elements_(num_elements), add_(add) {
  auto own = map.nodes_of(member);
  nodes_ = checked_nodes(std::move(nodes), static_cast<std::int64_t>(own.size()), num_elements);
  int deepest = 0;
  for (std::size_t i = 0; i < own.size(); ++i) append_steps(own[i], static_cast<int>(i), 0, steps_);
  for (const auto& each : steps_) deepest = std::max(deepest, each.depth);
  // Zeros, since what computes a leaf in its place may leave gaps.
  for (int depth = 1; depth <= deepest; ++depth)
    beside_.push_back(tensor::zeros({num_elements}, dtype::f32, nodes_.device()));
}

/// The last leaf of an inner node completes it.
void leaf_accumulator::append_steps(const tree_node& node, int row, int depth, std::vector<step>& steps) {
  if (node.count == 1) return steps.push_back({.leaf = node.first, .row = row, .depth = depth});
  auto left = left_child_count(node.count);
  append_steps({node.first, left}, row, depth, steps);
  append_steps({node.first + left, node.count - left}, row, depth + 1, steps);
  ++steps.back().num_merges;
}

tensor leaf_accumulator::place_of(std::size_t index) const {
  const auto& at = steps_.at(index);
  if (at.depth > 0) return beside_[static_cast<std::size_t>(at.depth - 1)];
  return nodes_.rows(at.row, 1).reshape({num_elements_});
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
  auto place = place_of(num_added_);
  bool is_in_place = gradient.dtype() == dtype::f32 && gradient.num_elements() == num_elements_ &&
                     gradient.bytes().data() == std::as_const(place).bytes().data();
  if (!is_in_place) {
    require_gradient(gradient, num_elements_);
    widen_leaf(gradient.bytes().data(), place.bytes().data(), num_elements_, gradient.dtype());
  }
  sums_.push_back(std::move(place));
  for (int i = 0; i < next.num_merges; ++i) {
    auto right = std::move(sums_.back());
    sums_.pop_back();
    add_(sums_.back(), right);
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

}  // namespace troupe::collective
