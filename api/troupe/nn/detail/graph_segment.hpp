#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "troupe/nn/graph_wiring.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn::detail {

/// A value that a segment of a graph is given: for the listed uses, or for all of them if there are none.
struct given_value {
  graph_source source;
  std::vector<graph_use> uses = {};
  bool operator==(const given_value&) const = default;
};

/// Some successive nodes of a graph, ready to run: a whole graph, or one pipeline stage.
///
/// The gradient of a value is the sum of the gradients of its uses, the last use first. How a segment is cut
/// out does not change the bits. If a value has several uses, each use accumulates its own gradient (from
/// within a module) before it is added to the others', in one segment as in several.
///
/// Fuses a ReLU directly after a Linear or Conv2d into it, with the same bits, where nothing else uses the
/// value between them. Values are released after their last use.
class graph_segment {
 public:
  /// Nodes [first, first + modules.size()). `inputs` holds each value from outside that they use, `outputs`
  /// what `run` returns.
  graph_segment(const graph_wiring& wiring, int first, std::vector<std::shared_ptr<Module>> modules,
                const std::vector<given_value>& inputs, const std::vector<graph_source>& outputs);

  const std::vector<std::shared_ptr<Module>>& modules() const { return modules_; }
  /// Returns the outputs, in order; `inputs` are the given values, in order. Errors name the layer.
  /// `on_module`: called with the index of each of modules() before it runs, but for a ReLU that is fused.
  std::vector<variable> run(std::vector<variable> inputs,
                            const std::function<void(std::size_t)>& on_module = nullptr) const;

 private:
  /// Values are kept in slots: first the given ones, then the outputs of the nodes.
  struct operand {
    int slot = 0;
    bool is_one_of_several = false;  ///< uses of the value, in the whole graph
    bool is_last = false;            ///< use of the slot in this segment
  };
  struct step {
    std::vector<operand> inputs;
    int first_output = 0;       ///< slot of the first output; others are in the slots after it
    bool is_with_next = false;  ///< fused with the next step, a ReLU
  };

  void release_after_last_uses();
  void fuse_activations();
  static std::vector<variable> take_inputs(const step& consumer, std::vector<variable>& slots);
  std::vector<variable> outputs_of(std::size_t index, const std::vector<variable>& inputs) const;

  std::vector<std::shared_ptr<Module>> modules_;
  std::vector<step> steps_;   ///< [modules]
  std::vector<int> outputs_;  ///< slots of the segment's outputs
  int num_slots_ = 0;
};

}  // namespace troupe::nn::detail
