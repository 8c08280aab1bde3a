#pragma once
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::schedule {

/// What a schedule costs, for a chain of equal stages without communication between devices.
struct closed_form {
  double makespan =
      0;  ///< in the costs' unit, from flush to flush; exact where the schedule's conditions hold
  int peak_activations = 0;  ///< of the device that keeps most, as timeline::peak_activations
};

/// The formulas of the papers, with `costs` for one stage and one microbatch. Of 1F1B, GPipe, ZB-H1 and ZB-H2
/// with one stage a device; of PipeDream-2BW with the microbatches of all steps between two flushes, which
/// are one for the cost of A. Throws std::invalid_argument for schedule_kind::custom.
closed_form closed_form_of(schedule_kind kind, const chunk_shape& shape, const action_costs& costs);

}  // namespace troupe::schedule
