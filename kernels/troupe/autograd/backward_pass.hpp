#pragma once
#include <map>
#include <memory>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// A backward pass from one value through the recorded graph, newest operation first. It computes input
/// gradients first and weight gradients later (for schedules that split the two), or both operation by
/// operation. Both give the same bits.
///
/// Releases each operation as soon as it is processed, unless the graph is retained.
class backward_pass {
 public:
  /// Throws std::logic_error for a constant.
  explicit backward_pass(const variable& from, backward_options options = {});

  /// Computes the gradients of the leaves, and keeps what the weight gradients need. `gradient` as in
  /// variable::backward. Throws std::logic_error when called twice.
  void run_inputs(const tensor& gradient);
  /// Adds the weight gradients. Throws std::logic_error unless run_inputs ran, once.
  void run_weights();
  /// Computes both together, which needs less memory.
  void run(const tensor& gradient);

 private:
  enum class phase { ready, inputs_done, done };
  enum class weight_mode { deferred, immediate };
  struct deferred_weight {
    std::shared_ptr<graph_node> node;
    tensor output_gradient;
  };

  void walk(const tensor& gradient, weight_mode mode);
  void visit(const std::shared_ptr<graph_node>& node, weight_mode mode);
  void add_weights(graph_node& node, const tensor& output_gradient);
  void count_parameters(const std::vector<std::shared_ptr<graph_node>>& nodes);

  backward_options options_;
  std::shared_ptr<graph_node> root_;
  phase phase_ = phase::ready;
  std::vector<deferred_weight> deferred_weights_;
  std::map<parameter*, int> remaining_;  ///< operations that still add to its gradient; only with on_gradient
};

}  // namespace troupe
