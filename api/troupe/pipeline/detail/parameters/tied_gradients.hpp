#pragma once
#include <set>
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::detail {

/// Sums the gradients of the tied weights of one stage. Each use of a weight accumulates its own gradient.
/// Before the optimizer steps the stage's first use, the gradients of all uses in the model are added, in the
/// same order in every stage. The other uses in the stage share its value.
class tied_gradients {
 public:
  struct weight {
    std::vector<std::string> uses;  ///< names in the whole model, in the order in which gradients are added
    std::vector<named_parameter> here;  ///< uses in this stage, in that order
    bool in_several_stages = false;
  };
  /// Takes trainable weights only. `frees_gradients`: lets go of a use's gradient when it is added elsewhere.
  explicit tied_gradients(std::vector<weight> weights = {}, bool frees_gradients = false)
      : weights_(std::move(weights)), frees_gradients_(frees_gradients) {}

  /// Whether a weight is also used by other stages.
  bool has_shared() const;
  /// Whether it is a use in this stage whose gradient is not the weight's until it is combined.
  bool is_use(const parameter& one) const;
  /// Sums the gradients of weights that are used only in this stage.
  void combine_own();
  /// Returns a packed copy of this stage's partial gradients: those of weights that other stages also use.
  tensor partial_gradients();
  /// Sums the gradients of these weights from the partial gradients of all stages. Throws std::runtime_error,
  /// naming the use, if one is missing.
  void combine(const std::vector<tensor>& partials);

  /// Called after the optimizer's step: clears gradients and cached conversions of the uses that share the
  /// value, unless mark_stepped(first) has.
  void mark_stepped();
  /// Lets go of the gradients of all uses.
  void detach_gradients();
  /// As mark_stepped, for the weight whose first use here is `first`, if there is one, ahead of the others.
  void mark_stepped(const parameter& first);

 private:
  static void mark_uses(const weight& shared);

  std::vector<weight> weights_;
  bool frees_gradients_;
  std::set<const parameter*> is_marked_;  ///< first uses, since the last mark_stepped()
};

}  // namespace troupe::detail
