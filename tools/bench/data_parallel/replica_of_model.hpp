#pragma once
#include <memory>
#include <vector>

#include "bench/compute/compute_models.hpp"
#include "bench/measure/step_clock.hpp"
#include "troupe/data_parallel/shard_strategy.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::bench {

/// First steps of a turn, which are not timed.
constexpr int num_uncounted_steps = 3;

using step_moments = std::shared_ptr<std::vector<step_moment>>;
/// Those of the last `count` steps: when each came to its loss, and the one before: [count + 1]. The first of
/// all steps computes the loss more often, to check it.
std::vector<step_moment> last_moments(const std::vector<step_moment>& all, int count);

/// How a compute model is a pipeline.
struct replica_form {
  int num_stages = 1;
  shard_strategy shard = shard_strategy::none;
  int num_shards = 1;  ///< of module_program_options
};
/// A compute model's programs as a pipeline: a gpt, or a Sequential. Each loss adds its moment to `moments`.
program::program_factory make_replica_programs(const compute_model& model, const step_moments& moments,
                                               const replica_form& form = {});
/// The batches of train_step, each as many times one after the other as there are replicas.
std::shared_ptr<batch_source> make_replica_batches(const compute_model& model, int num_replicas);

}  // namespace troupe::bench
