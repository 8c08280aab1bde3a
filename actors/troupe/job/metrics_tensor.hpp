#pragma once
#include <optional>
#include <vector>

#include "troupe/layout/tensor_contents.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe {

/// The metrics of a step as a tensor. The last stage's state copies include it, so that a call whose last
/// step is restored from a copy, not recomputed, still returns that step's metrics.
named_tensor metrics_tensor(const step_metrics& metrics);

/// What a part holds that has it.
tensor_contents metrics_contents();

/// Removes the metrics from the end of an unpacked state and returns them; none if the state has none.
std::optional<step_metrics> extract_metrics(std::vector<named_tensor>& state);

}  // namespace troupe
