#pragma once
#include <string>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::detail {

/// Parameters whose values are gathered, and whose gradients are reduced, by one call.
struct unit_of_model {
  std::string name;  ///< of its modules: "blocks.0", "transformer.wte to 3"
  std::vector<named_parameter> parameters;
};

/// Divides a model's parameters into units, in the order of the forward pass.
/// - `names`: modules that are a unit each; what is in none of them is one too, the first. If one is within
///   another, it is left out of the other.
/// - without names: by size. Modules that follow one another are a unit while they have less than
///   `num_elements`; a module with more is divided itself, if it has modules and no parameters of its own.
///
/// Throws std::invalid_argument for a name that no module with parameters has, and one given twice.
std::vector<unit_of_model> divide_into_units(nn::Module& model, const std::vector<std::string>& names,
                                             std::int64_t num_elements);

}  // namespace troupe::detail
