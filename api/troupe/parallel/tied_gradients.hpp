#pragma once
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/program/packed_state.hpp"

namespace troupe {

/// The tied weights of one stage: each of its uses accumulates a gradient of its own, and all uses in the
/// model are added, in one order everywhere, before the optimizer steps the first use that is here. The other
/// uses here share its value.
class tied_gradients {
 public:
  struct weight {
    std::vector<std::string> uses;      ///< in the whole model, in the order in which gradients are added
    std::vector<named_parameter> here;  ///< those of this stage, in that order
    bool in_several_stages = false;
  };
  /// Of weights that are learned.
  explicit tied_gradients(std::vector<weight> weights = {}) : weights_(std::move(weights)) {}

  /// Whether a weight is used by other stages too.
  bool has_shared() const;
  /// Adds up the weights all of whose uses are here.
  void combine_own();
  /// The gradients of the others' uses that are here, packed; a copy.
  tensor share();
  /// Adds up the others, from the shares of all stages. Throws std::runtime_error, naming it, if one lacks.
  void combine(const std::vector<tensor>& shares);

  /// The optimizer has stepped: what only follows has neither gradient nor conversions left.
  void stepped();

 private:
  std::vector<weight> weights_;
  packed_state_pool pool_;
};

}  // namespace troupe
