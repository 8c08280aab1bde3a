#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "troupe/planning/predict_job.hpp"

namespace troupe {

/// The options of `troupe plan`.
struct plan_request {
  std::filesystem::path job_file;
  std::filesystem::path profile_file;
  int processes = 1;
  std::vector<std::uint64_t> memory =
      {};                          ///< bytes: one for all devices, or one for each; empty or 0: no limit
  std::vector<double> speed = {};  ///< the same, relative to the device that was measured
  double bytes_per_s = 0;          ///< between devices; 0: transfers take no time
  double latency_s = 0;
  std::optional<std::string> map_file;  ///< file for the device map; none: it is not written
  bool list = false;                    ///< also the actions of each device
  bool json = false;
};

/// What the files say, and what follows from it.
struct prediction {
  cost_profile profile;
  DeviceMap map;
  prediction_options options;
  job_prediction job;
};

/// Reads the files and predicts the job with the device map that its file names, or else with the automatic
/// one. Throws bad_input for what cannot be, and for a placement that exceeds the memory of a device, saying
/// by how much and what would fit.
prediction predict(const plan_request& request);

/// Prints it as a table or as JSON, and writes the device map. Throws bad_input naming a file that cannot be
/// written.
void show(const plan_request& request, const prediction& shown);

}  // namespace troupe
