#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/autograd/operation.hpp"

namespace troupe {

/// What a value and its gradient have in common.
struct value_form {
  shape extents;
  dtype type = dtype::f32;
  device where;

  explicit value_form(const tensor& of) : extents(of.shape()), type(of.dtype()), where(of.device()) {}
  bool fits(const tensor& gradient) const {
    return gradient.dtype() == type && gradient.device() == where && gradient.shape() == extents;
  }
};
/// As describe(tensor) does.
std::string describe(const value_form& form);

/// A value in the graph that backward passes walk: the result of an operation, or a leaf.
class graph_node {
 public:
  /// A leaf.
  explicit graph_node(const tensor& value);
  /// `inputs` has a null pointer for each constant.
  graph_node(const tensor& value, std::unique_ptr<operation> recorded,
             std::vector<std::shared_ptr<graph_node>> inputs);
  ~graph_node();
  graph_node(const graph_node&) = delete;
  graph_node& operator=(const graph_node&) = delete;

  bool is_leaf() const { return is_leaf_; }
  /// Rises in the order in which the nodes of a graph were recorded.
  std::uint64_t order() const { return order_; }
  const value_form& form() const { return form_; }

  /// gradient += more, which may be undefined. Never writes to what somebody else may hold.
  void add_gradient(tensor more);
  /// Copies the gradient if somebody else may write to it: the caller of backward, or another leaf.
  void own_gradient();

  std::unique_ptr<operation> recorded;              ///< none once a backward pass has used it up
  std::vector<std::shared_ptr<graph_node>> inputs;  ///< the same
  tensor gradient;  ///< of a leaf; of others only while a backward pass is on its way

 private:
  value_form form_;
  bool is_leaf_;
  std::uint64_t order_;
};

/// The order of the newest node there is, of whichever graph.
std::uint64_t newest_order();

/// All that `root` depends on, newest first. Throws std::logic_error if a backward pass has used up a part.
std::vector<std::shared_ptr<graph_node>> nodes_behind(const std::shared_ptr<graph_node>& root);

}  // namespace troupe
