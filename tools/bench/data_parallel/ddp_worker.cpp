// Trains one of the models with DataParallel in several processes and prints one JSON object.
#include <sched.h>

#include <cmath>
#include <cstdio>

#include "bench/benches.hpp"
#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/best_step.hpp"
#include "bench/data_parallel/data_parallel_jobs.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/forked_ranks.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/parallel/data_parallel.hpp"

namespace troupe::bench {
namespace {

double max_over_ranks(double value, communicator& group) {
  auto x = tensor::full({1}, static_cast<float>(value));
  group.all_reduce(x, reduce_op::max, {.progress = progress_by::waiter}).wait();
  return double{x.values<float>()[0]};
}

/// Median seconds of a step, over as many steps as fit into `seconds` and on all ranks alike; the steps of
/// the ranks begin together.
double time_steps(double seconds, communicator& group, const std::function<void(std::uint64_t)>& step) {
  using clock = std::chrono::steady_clock;
  std::uint64_t number = 0;
  auto time_one = [&] {
    auto begin = clock::now();
    step(number++);
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  for (int i = 0; i < 3; ++i) time_one();
  auto count = std::max(5.0, std::floor(seconds / max_over_ranks(time_one(), group)));
  std::vector<double> times;
  while (static_cast<double>(times.size()) < count) times.push_back(time_one());
  return spread_of(times).median;
}

class ddp_measurement {
 public:
  ddp_measurement(const ddp_job& job, forked_rank& self)
      : job_(job),
        self_(self),
        group_(self.make_group("plain")),
        model_(make_compute_model({.name = job.model, .batch = job.batch})),
        optimizer_(model_.optimizer(model_.module->named_parameters())) {}

  nlohmann::ordered_json run() {
    auto compute_s = max_over_ranks(
        time_steps(job_.seconds, *group_, [&](std::uint64_t step) { train_step(model_, *optimizer_, step); }),
        *group_);
    parameters_ = time_parameters(model_, *optimizer_);
    auto step_s = time_replicated(*group_, optimizer_steps::overlapped);
    auto items = static_cast<double>(model_.items * self_.size());
    auto gradient_bytes = 4.0 * static_cast<double>(model_.module->num_parameters());
    nlohmann::ordered_json line{
        {model_.unit + "_per_s", items / step_s},
        {"step_s", step_s},
        {"waiting_step_s", time_replicated(*group_, optimizer_steps::after_all_reduces)},
        {"compute_s", compute_s},
        {"gradient_mib", gradient_bytes / (1 << 20)}};
    for (auto ratio : job_.links) line["links"].push_back(time_link(ratio, compute_s));
    return line;
  }

 private:
  /// An optimizer of DataParallel::make_optimizer, or one that waits for all gradients.
  enum class optimizer_steps { overlapped, after_all_reduces };

  double time_replicated(communicator& group, optimizer_steps how) {
    DataParallel replicated(*model_.module, group,
                            {.bucket_size_mb = job_.bucket_size_mb, .first_bucket_mb = job_.first_bucket_mb});
    auto made = replicated.make_optimizer(model_.optimizer);
    auto& optimizer = how == optimizer_steps::overlapped ? *made : *optimizer_;
    return max_over_ranks(time_steps(job_.seconds, group,
                                     [&](std::uint64_t step) {
                                       replicated.backward(loss_of(model_, step, [&](const variable& x) {
                                                             return replicated.forward(x);
                                                           }).loss);
                                       optimizer.apply(step);
                                     }),
                          *group_);
  }

  /// A link over which the gradients of a step take `ratio` times as long as computing it.
  nlohmann::ordered_json time_link(double ratio, double compute_s) {
    call_signature all{.kind = collective_kind::all_reduce, .count = model_.module->num_parameters()};
    auto communication_s = ratio * compute_s;
    auto bytes_per_second = link_bytes(all, self_.size()) / communication_s;
    communicator_options slow;
    slow.decorate = [this, bytes_per_second](std::unique_ptr<collective_backend> below) {
      return std::make_unique<throttled_backend>(std::move(below), self_.size(), bytes_per_second);
    };
    auto group = self_.make_group("link " + std::to_string(ratio), slow);
    auto larger = std::max(compute_s, communication_s);
    auto step_s = time_replicated(*group, optimizer_steps::overlapped);
    auto waiting_s = time_replicated(*group, optimizer_steps::after_all_reduces);
    return {{"communication_over_compute", ratio},
            {"megabytes_per_s", bytes_per_second / 1e6},
            {"communication_s", communication_s},
            {"step_s", step_s},
            {"step_over_larger", step_s / larger},
            {"step_over_sum", step_s / (compute_s + communication_s)},
            {"waiting_step_over_larger", waiting_s / larger},
            {"best_over_larger", best_step(compute_s, over_link(communication_s)) / larger}};
  }

  std::vector<timed_parameter> over_link(double communication_s) const {
    auto result = parameters_;
    for (auto& each : result) each.moves *= communication_s;
    return result;
  }

  const ddp_job& job_;
  forked_rank& self_;
  std::unique_ptr<communicator> group_;
  compute_model model_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::vector<timed_parameter> parameters_;  // what each moves is its share of all elements
};

/// Gives each rank cores of its own, as on hosts of their own: otherwise ranks that wake at the same moment
/// may share a core for a while beside an idle one. Does nothing where there are fewer cores than threads.
void pin_to_own_cores(int rank, int num_ranks, int threads_of_each) {
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < num_ranks * threads_of_each) return;
  for (int core = 0, number = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (number++ / threads_of_each == rank) CPU_SET(core, &own);
  }
  ::sched_setaffinity(0, sizeof own, &own);
}

void run(const ddp_job& job) {
  run_forked(job.ranks, [&](forked_rank& self) {
    pin_to_own_cores(self.rank(), job.ranks, job.threads);
    set_num_threads(job.threads);
    auto line = ddp_measurement(job, self).run();
    if (self.rank() == 0) std::printf("%s\n", line.dump().c_str());
  });
}

}  // namespace

void add_ddp_worker(CLI::App& workers) {
  add_worker(workers, "ddp", [](const nlohmann::json& job) { run(job.get<ddp_job>()); });
}

}  // namespace troupe::bench
