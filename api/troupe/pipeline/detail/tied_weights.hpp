#pragma once
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/partition.hpp"

namespace troupe::detail {

/// A weight that several layers of a model use (nn::TiedLinear).
///
/// Each use accumulates its own gradient; before the optimizer's step all are added in the order of the
/// layers, so the bits do not depend on the partition into stages. Every stage that uses the weight holds a
/// copy and its optimizer state, and applies the same update. In counts and snapshots it appears once, under
/// the owner's name, as a parameter of the first of these stages.
struct tied_weight {
  struct use {
    std::string name;  ///< full name of this layer's parameter
    int layer = 0;
  };
  std::string name;       ///< full name in the owning layer
  std::vector<use> uses;  ///< in the order of the layers, including the owner's
  initializer init = nullptr;
  bool requires_gradient = true;
};

/// Finds the tied weights of a model, sorted by name. Throws bad_input if an owner does not exist, is tied
/// itself or has another shape.
std::vector<tied_weight> tied_weights_of(const nn::Graph& model);

/// The stages that use the weight, ascending.
std::vector<int> stages_of(const tied_weight& weight, const std::vector<stage_range>& partition);

/// Moves the parameters that are uses of the weight out of those of a stage, in the order of the layers, and
/// makes them share one value, which begins as the owner's. At least one of them is a use.
std::vector<named_parameter> take_uses(const tied_weight& weight, std::vector<named_parameter>& parameters,
                                       std::uint64_t seed);

/// Makes the uses share the value of the first.
void share_value(const std::vector<named_parameter>& uses);

/// Of all uses in the model, in the order of the layers.
std::vector<std::string> names_of_uses(const tied_weight& weight);

/// The sorted names of all parameters of a model; each tied weight once.
std::vector<std::string> parameter_names_of(const nn::Graph& model);

}  // namespace troupe::detail
