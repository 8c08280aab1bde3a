#include "troupe/data_parallel/hooks/local_sgd.hpp"

#include "troupe/data_parallel/detail/dense_reduction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

class nothing_to_reduce : public bucket_reduction {
 public:
  bool proceed() override { return false; }
};

}  // namespace

void average_parameters(nn::Module& model, communicator& group) {
  std::vector<work> averaged;
  for (const auto& each : model.named_parameters()) {
    each.target->wait_ready();
    averaged.push_back(
        group.all_reduce(each.target->value(), reduce_op::mean, {.progress = progress_by::waiter}));
    each.target->mark_changed();
  }
  for (auto& each : averaged) each.wait();
}

local_sgd::local_sgd(const local_sgd_options& options) : options_(options) {
  if (options.period < 1) throw_invalid("local_sgd", "period >= 1", std::to_string(options.period));
  if (options.dense_steps < 0)
    throw_invalid("local_sgd", "dense_steps >= 0", std::to_string(options.dense_steps));
}

void local_sgd::prepare(const std::vector<gradient_bucket>& buckets) {
  for (const auto& each : buckets)
    if (each.replicas->num_leaves() != each.replicas->num_members())
      throw_invalid("local_sgd",
                    "one virtual replica for each of the " + std::to_string(each.replicas->num_members()) +
                        " members, since replicas have different weights: leave num_replicas at 0",
                    "num_replicas " + std::to_string(each.replicas->num_leaves()));
}

std::unique_ptr<bucket_reduction> local_sgd::begin(gradient_bucket& bucket, communicator& group) {
  steps_.on_begin(bucket);
  if (steps_.begun() <= options_.dense_steps) return detail::all_reduce_dense(bucket, group);
  // Gradients are scaled by 1 / num_replicas; undo it, since the member trains on its own gradient.
  scale(bucket.sum, static_cast<float>(bucket.replicas->num_leaves()));
  return std::make_unique<nothing_to_reduce>();
}

bool local_sgd::end_step(nn::Module& model, communicator& group) {
  auto local_steps = steps_.begun() - options_.dense_steps;
  bool is_time = local_steps > 0 && local_steps % options_.period == 0;
  if (is_time) average_parameters(model, group);
  return is_time;
}

}  // namespace troupe
