#pragma once
#include "bench/benches.hpp"

namespace troupe::bench {

/// Adds `troupe bench worker train`: a small training job that needs no data set.
void add_training_worker(const bench_commands& to);

}  // namespace troupe::bench
