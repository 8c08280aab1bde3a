#pragma once
#include <vector>

#include "troupe/nn/sequential.hpp"

namespace troupe {

/// Layers [first, last) of a Sequential.
struct stage_range {
  int first = 0;
  int last = 0;
  bool operator==(const stage_range&) const = default;
};

/// Cuts a model into contiguous stages so that the cost of the largest is as small as it can be. Every stage
/// begins with a layer that has parameters (the first one also takes what comes before), so that activations
/// stay with the layer before them. Throws bad_input, naming both numbers, if there are more stages than
/// layers with parameters, and if stages < 1.
std::vector<stage_range> cut_into_stages(const nn::Sequential& model, int stages);

}  // namespace troupe
