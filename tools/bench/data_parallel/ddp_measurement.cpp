#include "bench/data_parallel/ddp_measurement.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/best_step.hpp"
#include "bench/data_parallel/named_replica.hpp"
#include "bench/data_parallel/replicated_pipeline.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "bench/measure/spread.hpp"
#include "bench/measure/step_clock.hpp"
#include "bench/processes/bench_process.hpp"
#include "troupe/data_parallel/data_parallel.hpp"
#include "troupe/fsdp/fully_sharded_data_parallel.hpp"

namespace troupe::bench {
namespace {

double over_ranks(reduce_op op, double value, communicator& group) {
  auto x = tensor::full({1}, static_cast<float>(value));
  group.all_reduce(x, op, {.progress = progress_by::waiter}).wait();
  return double{x.values<float>()[0]};
}

double max_over_ranks(double value, communicator& group) { return over_ranks(reduce_op::max, value, group); }

/// The moments of `count` steps, after some that are not counted: at the loss of the one before, then of
/// each.
using steps_runner = std::function<std::vector<step_moment>(int count)>;

std::vector<step_moment> run_steps(int count, const std::function<void()>& forward,
                                   const std::function<void()>& rest) {
  std::vector<step_moment> moments;
  for (int i = -num_uncounted_steps; i <= count; ++i) {
    forward();
    if (i >= 0) moments.push_back(step_moment::now());
    rest();
  }
  return moments;
}

compute_model model_of(const ddp_job& job) {
  return make_compute_model({.name = job.model, .batch = job.batch});
}

/// Trains a model without communication.
class compute_steps {
 public:
  explicit compute_steps(const ddp_job& job)
      : model_(model_of(job)), optimizer_(model_.optimizer(model_.module->named_parameters())) {}

  std::vector<step_moment> run(int count) {
    loss_result result;
    return run_steps(
        count,
        [&] {
          result = loss_of(model_, step_, [&](const variable& x) { return model_.module->forward(x); });
        },
        [&] {
          result.loss.backward();
          optimizer_->apply(step_++);
        });
  }
  std::vector<timed_parameter> time_parameters() { return bench::time_parameters(model_, *optimizer_); }
  const compute_model& model() const { return model_; }

 private:
  compute_model model_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::uint64_t step_ = 0;
};

/// When the optimizer steps: each weight as its gradient comes, or all when all gradients are there.
enum class optimizer_steps { overlapped, after_all_reduces };

/// Trains a model with DataParallel over a group.
class data_parallel_steps {
 public:
  data_parallel_steps(const ddp_job& job, communicator& group, optimizer_steps how)
      : model_(model_of(job)),
        replicated_(*model_.module, group,
                    {.bucket_size_mb = job.bucket_size_mb, .first_bucket_mb = job.first_bucket_mb}),
        optimizer_(how == optimizer_steps::overlapped ? replicated_.make_optimizer(model_.optimizer)
                                                      : model_.optimizer(model_.module->named_parameters())) {
  }

  std::vector<step_moment> run(int count) {
    loss_result result;
    auto moments = run_steps(
        count,
        [&] { result = loss_of(model_, step_, [&](const variable& x) { return replicated_.forward(x); }); },
        [&] {
          replicated_.backward(result.loss);
          optimizer_->apply(step_++);
        });
    optimizer_->synchronize();
    return moments;
  }

 private:
  compute_model model_;
  DataParallel replicated_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::uint64_t step_ = 0;
};

/// Trains a model with FullyShardedDataParallel over a group.
class fully_sharded_steps {
 public:
  fully_sharded_steps(const ddp_job& job, communicator& group)
      : model_(model_of(job)),
        sharded_(*model_.module, group, {.unit_size_mb = job.unit_size_mb}),
        optimizer_(sharded_.make_optimizer(model_.optimizer)) {}

  std::vector<step_moment> run(int count) {
    loss_result result;
    return run_steps(
        count,
        [&] { result = loss_of(model_, step_, [&](const variable& x) { return sharded_.forward(x); }); },
        [&] {
          sharded_.backward(result.loss);
          optimizer_->apply(step_++);
        });
  }

 private:
  compute_model model_;
  FullyShardedDataParallel sharded_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::uint64_t step_ = 0;
};

class ddp_measurement {
 public:
  /// `link`: the rate of the link between replicas, which it sets.
  ddp_measurement(const ddp_job& job, actors::process::process& self, std::shared_ptr<emulated_link> link)
      : job_(job),
        self_(self),
        link_(std::move(link)),
        num_ranks_(self.world_size()),
        groups_(self),
        group_(groups_.make("plain")),
        computing_(job) {}

  nlohmann::ordered_json run() {
    timed_steps first;
    first.add(computing_.run(least_steps_of_a_turn));
    auto one_s = max_over_ranks(first.median_s(), *group_);
    parameters_ = computing_.time_parameters();
    auto measured = time_beside_each_other(*group_, one_s);
    const auto& [computing, overlapped, waiting, replicas, named, sharded] = measured;
    const auto& unit = computing_.model().unit;
    nlohmann::ordered_json line{{unit + "_per_s", items_per_s(overlapped)},
                                {"step_s", overlapped.step_s},
                                {"compute_s", computing.step_s},
                                {"step_over_compute", overlapped.step_s / computing.step_s},
                                {"waiting_step_over_compute", waiting.step_s / computing.step_s}};
    if (job_.replicas)
      line.update({{"replicas_" + unit + "_per_s", items_per_s(replicas)},
                   {"replicas_step_s", replicas.step_s},
                   {"replicas_over_ddp", overlapped.step_s / replicas.step_s},
                   {"processor_s", overlapped.processor_s},
                   {"replicas_processor_s", replicas.processor_s},
                   {"replicas_over_ddp_by_processor", overlapped.processor_s / replicas.processor_s}});
    if (job_.named_calls)
      line.update({{"named_step_s", named.step_s},
                   {"named_processor_s", named.processor_s},
                   {"named_over_replicas", replicas.step_s / named.step_s},
                   {"named_over_replicas_by_processor", replicas.processor_s / named.processor_s}});
    if (job_.fsdp)
      line.update({{"sharded_" + unit + "_per_s", items_per_s(sharded)},
                   {"sharded_step_s", sharded.step_s},
                   {"sharded_over_ddp", overlapped.step_s / sharded.step_s},
                   {"sharded_processor_s", sharded.processor_s},
                   {"sharded_over_ddp_by_processor", overlapped.processor_s / sharded.processor_s}});
    for (auto ratio : job_.links) line["links"].push_back(time_link(ratio, computing.step_s));
    return line;
  }

 private:
  static constexpr int num_turns = 4, least_steps_of_a_turn = 5;

  /// In seconds.
  struct timed_step {
    double step_s = 0;       ///< the median of the slowest rank
    double processor_s = 0;  ///< the mean, of all ranks together
  };
  struct timed_kinds {
    timed_step computing, overlapped, waiting, replicas, named, sharded;
  };

  /// In short turns, so that what else the machine does takes as much from each; `step_s`: about what a step
  /// takes. Without job_.replicas, job_.named_calls and job_.fsdp, none of these.
  timed_kinds time_beside_each_other(communicator& group, double step_s) {
    data_parallel_steps overlapped(job_, group, optimizer_steps::overlapped);
    data_parallel_steps waiting(job_, group, optimizer_steps::after_all_reduces);
    std::optional<replicated_pipeline> replicas;
    std::vector<steps_runner> kinds{[&](int count) { return computing_.run(count); },
                                    [&](int count) { return overlapped.run(count); },
                                    [&](int count) { return waiting.run(count); }};
    if (job_.replicas) {
      replicas.emplace(computing_.model(), self_, shard_strategy_from(job_.shard), job_.stages);
      kinds.emplace_back([&](int count) { return replicas->run(count); });
    }
    std::optional<named_replica> named;
    if (job_.named_calls) {
      named.emplace(computing_.model(), self_, link_);
      kinds.emplace_back([&](int count) { return named->run(count); });
    }
    std::optional<fully_sharded_steps> sharded;
    if (job_.fsdp) {
      sharded.emplace(job_, group);
      kinds.emplace_back([&](int count) { return sharded->run(count); });
    }
    auto count = std::max(least_steps_of_a_turn, static_cast<int>(job_.seconds / num_turns / step_s));
    std::vector<timed_steps> times(kinds.size());
    for (int turn = 0; turn < num_turns; ++turn)
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        times[i].add(kinds[i](count));
        max_over_ranks(0, *group_);  // none begins before all are here
      }
    auto result_of = [&](const timed_steps& steps) -> timed_step {
      return {max_over_ranks(steps.median_s(), *group_),
              over_ranks(reduce_op::sum, steps.mean_processor_s(), *group_)};
    };
    timed_kinds results{result_of(times[0]), result_of(times[1]), result_of(times[2]), {}, {}, {}};
    if (job_.replicas) results.replicas = result_of(times[3]);
    if (job_.named_calls) results.named = result_of(times[4]);
    if (job_.fsdp) results.sharded = result_of(times.back());
    if (named && named->weights_sha256() != replicas->weights_sha256())
      throw std::runtime_error("replicas over a named communicator have other weights than a pipeline's");
    return results;
  }

  double items_per_s(const timed_step& step) const {
    return static_cast<double>(computing_.model().items * num_ranks_) / step.step_s;
  }

  /// A link over which the gradients of a step take `ratio` times `compute_s`, about what computing it takes.
  nlohmann::ordered_json time_link(double ratio, double compute_s) {
    collective::call_signature all{.kind = collective::collective_kind::all_reduce,
                                   .count = computing_.model().module->num_parameters()};
    auto communication_s = ratio * compute_s;
    auto bytes_per_s = link_bytes(all, num_ranks_) / communication_s;
    auto group = groups_.make("link " + std::to_string(ratio), over_link(num_ranks_, bytes_per_s));
    link_->set_bytes_per_s(static_cast<std::uint64_t>(bytes_per_s));
    auto measured = time_beside_each_other(*group, std::max(compute_s, communication_s));
    link_->set_bytes_per_s(0);
    const auto& [computing, overlapped, waiting, replicas, named, sharded] = measured;
    auto larger = std::max(computing.step_s, communication_s);
    auto parameters = parameters_;
    for (auto& each : parameters) {
      each.moves *= communication_s;
      each.used *= computing.step_s;
      each.ready *= computing.step_s;
    }
    nlohmann::ordered_json line{{"communication_over_compute", ratio},
                                {"step_over_larger", overlapped.step_s / larger},
                                {"best_over_larger", best_step(computing.step_s, parameters) / larger},
                                {"waiting_step_over_larger", waiting.step_s / larger},
                                {"step_over_sum", overlapped.step_s / (computing.step_s + communication_s)}};
    if (job_.replicas) line["replicas_step_over_larger"] = replicas.step_s / larger;
    if (job_.named_calls) line["named_over_replicas"] = replicas.step_s / named.step_s;
    if (job_.fsdp) line["sharded_step_over_larger"] = sharded.step_s / larger;
    return line;
  }

  const ddp_job& job_;
  actors::process::process& self_;
  std::shared_ptr<emulated_link> link_;
  int num_ranks_;
  ucx_groups groups_;
  std::unique_ptr<communicator> group_;
  compute_steps computing_;
  std::vector<timed_parameter> parameters_;  // as time_parameters returns them
};

}  // namespace

nlohmann::ordered_json measure_ddp(const ddp_job& job, actors::process::process& self,
                                   const std::shared_ptr<emulated_link>& link) {
  return ddp_measurement(job, self, link).run();
}

}  // namespace troupe::bench
