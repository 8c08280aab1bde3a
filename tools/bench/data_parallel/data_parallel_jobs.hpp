#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// What one measurement of `troupe bench ddp` trains, in processes forked from one.
struct ddp_job {
  std::string model = "mlp";
  int ranks = 2;
  int threads = 1;         ///< of each process
  std::int64_t batch = 0;  ///< of each process; 0: the model's own
  double seconds = 4;      ///< of each timing
  double bucket_size_mb = 25, first_bucket_mb = 1;
  std::vector<double> links;  ///< how long the gradients take over each, over the time of computing a step
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ddp_job, model, ranks, threads, batch, seconds,
                                                bucket_size_mb, first_bucket_mb, links)

/// The same of `troupe bench compression`.
struct compression_job {
  std::string hook = "none";  ///< or bf16, topk (1 % of the elements), powersgd (rank 4)
  int ranks = 4;
  // Speed:
  std::string model = "mlp";
  std::int64_t batch = 32;  ///< of each process; 0: the model's own
  double link_mbit = 100;   ///< of each process's link, Mbit/s each way
  int steps = 10;           ///< of one timing
  // Accuracy on Fashion-MNIST:
  std::string data;  ///< its folder; empty: measure the speed
  int epochs = 5;
  std::int64_t dense_steps = 117;  ///< before topk and powersgd begin: a twentieth of 5 epochs on 4 ranks
  double lr = 0.1;
  std::uint64_t seed = 1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(compression_job, hook, ranks, model, batch, link_mbit, steps,
                                                data, epochs, dense_steps, lr, seed)

}  // namespace troupe::bench
