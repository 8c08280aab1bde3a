#pragma once
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/placement/cost_profile.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe {

struct profile_options {
  int num_repeats = 15;    ///< passes that are measured, of whose times the median counts; one more warms up
  std::uint64_t seed = 1;  ///< for the initial weights
  device place = {};       ///< where the layers run
};

/// Measures what each layer of the pipeline's model costs with a microbatch of this size: forward, input
/// gradient, weight gradient and optimizer, memory by category, and the bytes of each value between layers.
/// Layers are the model's nodes, and the layers within them that a DeviceMap can name. Runs on the calling
/// thread, with the threads of set_num_threads, and keeps one copy of the whole model meanwhile; blocks until
/// it is done.
///
/// No two measurements are equal, and automatic placements from them may differ: measure in one process, and
/// let all read what it has saved (save_profile, read_profile).
///
/// With one thread times are those of its processor, whatever else the machine does; with more, those that
/// pass. A job whose cores are shared with others takes longer than either. On a GPU each pass is measured
/// until the GPU has done it, so that small layers seem to cost what it takes to queue them.
///
/// Each layer runs as a stage of its own. So what a job fuses within a stage (a ReLU after a Linear or
/// Conv2d) is measured apart, and a tied weight is counted with each layer that uses it.
///
/// Throws bad_input for a place that does not exist, std::invalid_argument for fewer than one repeat and for
/// a microbatch without samples or targets, and what the model throws.
cost_profile profile_model(const Pipeline& pipeline, const batch& microbatch,
                           const profile_options& options = {});

}  // namespace troupe
