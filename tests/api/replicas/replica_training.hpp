#pragma once
// Training of replicas in one process, and the same training without pipelines.
#include <cstdint>
#include <string>
#include <vector>

#include "package/synthetic.hpp"

namespace troupe::testing {

nn::Sequential dropped_model();
Pipeline replicated(int stages, int replicas, const nn::Sequential& model = dropped_model());
job_options options_of(std::uint64_t steps, int batch = 32);
dataset_ptr points();

struct trained_bits {
  std::vector<std::uint64_t> losses;
  std::string weights;
  bool operator==(const trained_bits&) const = default;
};
trained_bits train(int num_devices, Pipeline pipeline, std::uint64_t steps = 6, int batch = 32);

/// The sum of [first, first + count) in the tree of tree_reduction.hpp.
tensor tree_sum(const std::vector<tensor>& leaves, std::size_t first, std::size_t count);

/// The same training without pipelines: replica after replica accumulates its microbatches.
/// `sync`: each replica's gradients are rounded to it, and their sums, which are computed in f32.
trained_bits plain_loop(int replicas, int batch = 32, dtype sync = dtype::f32,
                        const nn::Sequential& trained = dropped_model());

}  // namespace troupe::testing
