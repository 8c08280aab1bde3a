#pragma once
#include <string>
#include <vector>

#include "troupe/mesh/placement.hpp"
#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/partition.hpp"

namespace troupe::detail {

/// Throws bad_input where some devices are CPUs and others GPUs, and both compute what must have the same
/// bits: the replicas of a stage, or the stages that step a tied weight each for itself.
void check_places(const nn::Graph& model, const std::vector<stage_range>& partition,
                  const mesh::placement& placed);

/// Which nodes of the model are on which kind of device, on which the bits of a job depend: "0 to 3 cpu, 4 to
/// 7 cuda". Empty where all devices are of one kind.
std::string text_of_places(const std::vector<stage_range>& partition, const mesh::placement& placed);

}  // namespace troupe::detail
