#pragma once
#include <map>
#include <memory>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// The way back from one value through what was recorded, newest operation first: input gradients first and
/// weight gradients later, or both operation by operation. Either way gives the same bits.
///
/// Unless the graph is retained, each operation is given up as soon as it is done.
class backward_pass {
 public:
  /// Throws std::logic_error for a constant.
  explicit backward_pass(const variable& from, backward_options options = {});

  /// Brings gradients to the leaves, and keeps what the weight gradients need. `gradient` as in
  /// variable::backward. Throws std::logic_error when called twice.
  void run_inputs(const tensor& gradient);
  /// Adds the weight gradients. Throws std::logic_error unless run_inputs ran, once.
  void run_weights();
  /// Both at once, so that less is held at a time.
  void run(const tensor& gradient);

 private:
  enum class phase { ready, inputs_done, done };
  enum class weights { later, at_once };
  struct waiting {
    std::shared_ptr<graph_node> node;
    tensor output_gradient;
  };

  void walk(const tensor& gradient, weights when);
  void visit(const std::shared_ptr<graph_node>& node, weights when);
  void add_weights(graph_node& node, const tensor& output_gradient);
  void count_parameters(const std::vector<std::shared_ptr<graph_node>>& nodes);

  backward_options options_;
  std::shared_ptr<graph_node> root_;
  phase phase_ = phase::ready;
  std::vector<waiting> for_weights_;
  std::map<parameter*, int> remaining_;  ///< operations that will add to it; only with on_gradient
};

}  // namespace troupe
