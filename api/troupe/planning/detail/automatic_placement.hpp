#pragma once
#include <cstdint>

#include "troupe/planning/predict_job.hpp"

namespace troupe::detail {

/// An automatic placement, and what it would do.
struct placed_job {
  DeviceMap map;
  job_prediction job;
  std::uint64_t missing_bytes = 0;  ///< that each device would need more; 0: it fits
};

/// DeviceMap::automatic with room for all that predict_job says that a device holds: balance() counts what
/// lasts and activations, so what a placement needs beyond is kept free, and layers are placed again. If none
/// is found that fits, the result is one that fits with `missing_bytes` more on each device that has a limit.
/// Throws bad_input as predict_job, balance_for and balance do, but not for lack of memory.
placed_job automatic_placement(const cost_profile& profile, const prediction_options& options);

}  // namespace troupe::detail
