#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::actors::job {

/// The metrics of a step as a tensor. The last stage's state copies include it, so that a call whose last
/// step is restored from a copy, not recomputed, still returns that step's metrics.
named_tensor metrics_tensor(const program::step_metrics& metrics);
/// The same of all replicas, in order: in copies that are equal in all of them.
named_tensor replica_metrics_tensor(const std::vector<program::step_metrics>& of_replicas);

/// What a part holds that has it.
tensor_contents metrics_contents();
tensor_contents replica_metrics_contents(int num_replicas);

/// Removes the metrics from the end of an unpacked state of `replica` and returns them by replica: its own,
/// or those of all; empty if the state has none.
std::map<std::int32_t, program::step_metrics> extract_metrics(std::vector<named_tensor>& state,
                                                              std::int32_t replica);

}  // namespace troupe::actors::job
