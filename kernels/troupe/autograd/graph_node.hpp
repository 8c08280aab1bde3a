#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "troupe/autograd/operation.hpp"

namespace troupe {

/// A value in the graph that backward passes walk: the result of an operation, or a leaf.
class graph_node {
 public:
  /// A leaf.
  graph_node();
  /// `inputs` has a null pointer for each constant.
  graph_node(std::unique_ptr<operation> recorded, std::vector<std::shared_ptr<graph_node>> inputs);
  ~graph_node();
  graph_node(const graph_node&) = delete;
  graph_node& operator=(const graph_node&) = delete;

  bool is_leaf() const { return is_leaf_; }
  /// Rises in the order in which the nodes of a graph were recorded.
  std::uint64_t order() const { return order_; }

  std::unique_ptr<operation> recorded;              ///< none once a backward pass has used it up
  std::vector<std::shared_ptr<graph_node>> inputs;  ///< the same
  tensor gradient;  ///< of a leaf; of others only while a backward pass is on its way

 private:
  bool is_leaf_;
  std::uint64_t order_;
};

/// sum += more, where either may be undefined; never writes to what somebody else may hold.
void add_to(tensor& sum, const tensor& more);

}  // namespace troupe
