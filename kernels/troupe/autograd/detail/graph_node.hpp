#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/autograd/operation.hpp"
#include "troupe/autograd/parameter.hpp"

namespace troupe {

/// Shape, dtype and device of a value, which its gradient must have too (PyTorch's InputMetadata).
struct tensor_metadata {
  shape extents;
  dtype type = dtype::f32;
  device target;

  explicit tensor_metadata(const tensor& x) : extents(x.shape()), type(x.dtype()), target(x.device()) {}
  bool fits(const tensor& gradient) const {
    return gradient.dtype() == type && gradient.device() == target && gradient.shape() == extents;
  }
};
/// Formats as describe(tensor) does.
std::string describe(const tensor_metadata& form);

/// A node of the autograd graph: the result of a recorded operation, or a leaf.
class graph_node {
 public:
  /// A leaf.
  explicit graph_node(const tensor& value);
  /// `inputs` has a null pointer for each constant. `parameters`: those of the operation.
  graph_node(const tensor& value, std::unique_ptr<operation> recorded,
             std::vector<std::shared_ptr<graph_node>> inputs, std::vector<parameter*> parameters);
  ~graph_node();
  graph_node(const graph_node&) = delete;
  graph_node& operator=(const graph_node&) = delete;

  bool is_leaf() const { return is_leaf_; }
  /// Increases in the order in which nodes are recorded.
  std::uint64_t order() const { return order_; }
  const tensor_metadata& form() const { return form_; }

  /// gradient += more; `more` may be undefined. Allocates a new tensor if the gradient's memory may be
  /// shared.
  void add_gradient(tensor more);
  /// Copies the gradient if its memory is shared with the caller of backward or with another leaf.
  void unshare_gradient();
  /// The operation's parameters that get a gradient: frozen neither when it was recorded nor now.
  std::vector<parameter*> trained_parameters() const;

  std::unique_ptr<operation> recorded;              ///< null once a backward pass has released it
  std::vector<std::shared_ptr<graph_node>> inputs;  ///< empty once released
  tensor gradient;                                  ///< for non-leaves only during a backward pass

 private:
  tensor_metadata form_;
  bool is_leaf_;
  std::uint64_t order_;
  std::vector<parameter*> parameters_;  ///< not frozen when the operation was recorded
};

/// The sequence number of the newest node of any graph.
std::uint64_t newest_sequence_number();

/// All nodes that `root` depends on, newest first. Throws std::logic_error if a backward pass has released
/// one of them.
std::vector<std::shared_ptr<graph_node>> reachable_nodes(const std::shared_ptr<graph_node>& root);

}  // namespace troupe
