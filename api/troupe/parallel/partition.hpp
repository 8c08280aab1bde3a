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

/// Partitions a model into contiguous stages such that the cost of the largest stage is minimal. Every stage
/// begins with a layer that has parameters (the first stage also gets the layers before it), so that an
/// activation stays with the layer before it. Throws bad_input if stages < 1 or there are more stages than
/// layers with parameters.
std::vector<stage_range> partition_into_stages(const nn::Sequential& model, int stages);

}  // namespace troupe
