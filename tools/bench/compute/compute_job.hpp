#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::bench {

/// What one process of `troupe bench compute` trains. torch_compute.py takes its first seven fields.
struct compute_job {
  std::string model = "gpt";
  int threads = 1;
  std::string dtype = "f32";
  std::string device = "cpu";
  std::int64_t batch = 0, length = 0;  ///< 0: the model's own
  double seconds = 4;
  int losses = 0;       ///< number of steps whose losses are printed instead of timing steps; 0: none
  std::string weights;  ///< write the initial weights and the data to this file; empty: no
  bool queue_each_kernel = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(compute_job, model, threads, dtype, device, batch, length,
                                                seconds, losses, weights, queue_each_kernel)

/// Trains the model for a while in this process, without actors, and prints one JSON object.
void train(const compute_job& job);

}  // namespace troupe::bench
