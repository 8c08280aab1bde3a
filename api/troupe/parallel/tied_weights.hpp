#pragma once
#include <string>
#include <vector>

#include "troupe/nn/sequential.hpp"
#include "troupe/parallel/cut.hpp"

namespace troupe {

/// A weight that several layers of a model use (nn::TiedLinear).
///
/// Each use has a gradient of its own, and before the optimizer's step all of them are added in the order of
/// the layers, wherever the layers are: so the bits do not depend on the cut. A stage that uses it holds it,
/// with what the optimizer keeps for it, and changes it as the others do; it counts once, under the name it
/// has in the layer that owns it, as a parameter of the first of these stages.
struct tied_weight {
  struct use {
    std::string name;  ///< in the whole model, of this layer's parameter
    int layer = 0;
  };
  std::string name;       ///< in the whole model, in the layer that owns it
  std::vector<use> uses;  ///< in the order of the layers, the owner's among them
  initializer begin = nullptr;
  bool requires_gradient = true;
};

/// In name order. Throws bad_input for a weight that is not there, is tied itself, or has another shape.
std::vector<tied_weight> tied_weights_of(const nn::Sequential& model);

/// The stages that use it, ascending.
std::vector<int> stages_of(const tied_weight& weight, const std::vector<stage_range>& cut);

/// The names of all parameters of a model, in order; tied ones once.
std::vector<std::string> parameter_names_of(const nn::Sequential& model);

}  // namespace troupe
