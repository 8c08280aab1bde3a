#pragma once
#include <string>
#include <vector>

#include "troupe/nn/graph.hpp"

namespace troupe::detail {

/// The names of a model's layers by mode (Module::train), in order. A Sequential and a Graph have none of
/// their own: a cut within them does not change these lists.
struct layer_modes {
  std::vector<std::string> trained;
  std::vector<std::string> evaluated;  ///< in evaluation mode, also while the model is trained
  bool operator==(const layer_modes&) const = default;
};

layer_modes modes_of(const nn::Graph& model);

/// Those in evaluation mode: "1, 3.norm"; "none"; "53 layers (1, 3.norm, ...; hash 0d1a..)".
std::string text_of(const layer_modes& modes);

/// The frozen parameters of a model, in the same form: "0.bias, 0.weight"; "none".
std::string frozen_parameters_of(const nn::Graph& model);

}  // namespace troupe::detail
