#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "troupe/pipeline/device_map.hpp"
#include "troupe/planning/predict_memory.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe {

/// What a job is to run on, and how.
struct prediction_options {
  schedule_kind schedule = schedule_kind::one_f_one_b;
  int num_microbatches = 1;
  std::vector<device_capacity> devices = {};  ///< of the job; a device map may use fewer
  double bytes_per_s = 0;                     ///< between devices; 0: transfers take no time
  double latency_s = 0;                       ///< of one transfer
  int num_replicas = 1;                       ///< each has as many devices
};

/// The bytes that go from one device to another in a step: values one way, their gradients the other.
struct link_load {
  int from = 0;
  int to = 0;
  std::uint64_t bytes = 0;
};

/// What a job would do, before anything of it is allocated.
struct job_prediction {
  std::vector<layer_run> stages;
  plan made;
  timeline ran;                     ///< of one step, in seconds
  std::vector<held_memory> memory;  ///< [device]
  std::vector<link_load> links;     ///< ascending by from, to
};

/// Predicts a step from what layers cost, placed by `map`, by simulating its plan. It leaves out reductions
/// between stages, and what the runtime itself and the sums over replicas take. With replicas all that it
/// says is of one of them. Throws bad_input for a map that does not place the
/// profile's layers, or names a device that is not there, and as make_plan does. Memory is not checked.
job_prediction predict_job(const cost_profile& profile, const DeviceMap& map,
                           const prediction_options& options);

/// By how many bytes the peak of a device exceeds its memory; 0 if it fits.
std::uint64_t memory_excess(const job_prediction& job, const prediction_options& options, std::size_t device);

/// What DeviceMap::automatic needs to place layers on these devices, each of which gets one stage. Throws
/// bad_input for a schedule with more.
balance_options balance_for(const prediction_options& options);

}  // namespace troupe
