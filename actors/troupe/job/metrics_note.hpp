#pragma once
#include <optional>
#include <vector>

#include "troupe/program/stage_program.hpp"

namespace troupe {

/// The last stage's copies carry the metrics of their step beside its state, so that a call whose last step
/// needs no repetition after a failure still ends with them.
named_tensor metrics_note(const step_metrics& metrics);

/// Takes the note from the end of an unpacked state; none if there is none.
std::optional<step_metrics> take_metrics_note(std::vector<named_tensor>& state);

}  // namespace troupe
