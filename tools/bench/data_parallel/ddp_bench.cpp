// troupe bench ddp: starts jobs whose processes train with DataParallel, and holds their steps to one without
// communication, and to those of a pipeline's replicas.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/best_step.hpp"
#include "bench/data_parallel/replicated_pipeline.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "bench/measure/report.hpp"
#include "bench/measure/spread.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/bench_node.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/parallel/data_parallel.hpp"

namespace troupe::bench {
namespace {

/// What one measurement of `troupe bench ddp` trains, in processes of a job.
struct ddp_job {
  std::string model = "mlp";
  int ranks = 2;
  int threads = 1;         ///< of each process
  std::int64_t batch = 0;  ///< of each process; 0: the model's own
  double seconds = 4;      ///< of each timing
  double bucket_size_mb = 25, first_bucket_mb = 1;
  std::vector<double> links;  ///< how long the gradients take over each, over the time of computing a step
  bool replicas = false;      ///< measure a pipeline's replicas beside
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ddp_job, model, ranks, threads, batch, seconds,
                                                bucket_size_mb, first_bucket_mb, links, replicas)

double over_ranks(reduce_op op, double value, communicator& group) {
  auto x = tensor::full({1}, static_cast<float>(value));
  group.all_reduce(x, op, {.progress = progress_by::waiter}).wait();
  return double{x.values<float>()[0]};
}

double max_over_ranks(double value, communicator& group) { return over_ranks(reduce_op::max, value, group); }

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
  return median_of(std::move(times));
}

class ddp_measurement {
 public:
  /// `link`: the rate of the link between replicas, which it sets.
  ddp_measurement(const ddp_job& job, node& self, std::atomic<std::uint64_t>& link)
      : job_(job),
        self_(self),
        link_(link),
        num_ranks_(self.world_size()),
        groups_(self),
        group_(groups_.make("plain")),
        model_(make_compute_model({.name = job.model, .batch = job.batch})),
        optimizer_(model_.optimizer(model_.module->named_parameters())) {}

  nlohmann::ordered_json run() {
    auto compute_s = max_over_ranks(
        time_steps(job_.seconds, *group_, [&](std::uint64_t step) { train_step(model_, *optimizer_, step); }),
        *group_);
    parameters_ = time_parameters(model_, *optimizer_);
    auto step_s = time_replicated(*group_, optimizer_steps::overlapped);
    auto waiting_s = time_replicated(*group_, optimizer_steps::after_all_reduces);
    nlohmann::ordered_json line{
        {model_.unit + "_per_s", static_cast<double>(model_.items * num_ranks_) / step_s},
        {"step_s", step_s},
        {"compute_s", compute_s},
        {"step_over_compute", step_s / compute_s},
        {"waiting_step_over_compute", waiting_s / compute_s}};
    if (job_.replicas) line.update(time_beside_replicas(step_s));
    for (auto ratio : job_.links) line["links"].push_back(time_link(ratio, compute_s));
    return line;
  }

 private:
  /// An optimizer of DataParallel::make_optimizer, or one that waits for all gradients.
  enum class optimizer_steps { overlapped, after_all_reduces };

  /// DataParallel and a pipeline's replicas in short turns, so that what else the machine does takes as much
  /// from both.
  nlohmann::ordered_json time_beside_replicas(double step_s) {
    constexpr int num_turns = 4;
    auto count = static_cast<int>(std::max(5.0, std::floor(job_.seconds / num_turns / step_s)));
    replicated_pipeline pipeline(model_, self_);
    DataParallel replicated(*model_.module, *group_,
                            {.bucket_size_mb = job_.bucket_size_mb, .first_bucket_mb = job_.first_bucket_mb});
    auto optimizer = replicated.make_optimizer(model_.optimizer);
    timed_steps of_ddp, of_replicas;
    std::uint64_t step = 0;
    for (int turn = 0; turn < num_turns; ++turn) {
      std::vector<step_moment> moments;
      for (int i = -3; i <= count; ++i) {
        auto loss = loss_of(model_, step, [&](const variable& x) { return replicated.forward(x); }).loss;
        if (i >= 0) moments.push_back(step_moment::now());
        replicated.backward(loss);
        optimizer->apply(step++);
      }
      optimizer->synchronize();
      of_ddp.add(moments);
      max_over_ranks(0, *group_);  // none begins before all are here
      of_replicas.add(pipeline.run(count));
      max_over_ranks(0, *group_);
    }
    auto ddp_s = max_over_ranks(of_ddp.median_s(), *group_);
    auto replicas_s = max_over_ranks(of_replicas.median_s(), *group_);
    auto ddp_processor_s = over_ranks(reduce_op::sum, of_ddp.mean_processor_s(), *group_);
    auto replicas_processor_s = over_ranks(reduce_op::sum, of_replicas.mean_processor_s(), *group_);
    return {
        {"replicas_" + model_.unit + "_per_s", static_cast<double>(model_.items * num_ranks_) / replicas_s},
        {"replicas_step_s", replicas_s},
        {"step_beside_replicas_s", ddp_s},
        {"replicas_over_ddp", ddp_s / replicas_s},
        {"processor_s", ddp_processor_s},
        {"replicas_processor_s", replicas_processor_s},
        {"replicas_over_ddp_by_processor", ddp_processor_s / replicas_processor_s}};
  }

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
    auto group = groups_.make("link " + std::to_string(ratio),
                              over_link(num_ranks_, link_bytes(all, num_ranks_) / communication_s));
    auto parameters = parameters_;
    for (auto& each : parameters) each.moves *= communication_s;
    auto larger = std::max(compute_s, communication_s);
    auto step_s = time_replicated(*group, optimizer_steps::overlapped);
    auto waiting_s = time_replicated(*group, optimizer_steps::after_all_reduces);
    nlohmann::ordered_json line{{"communication_over_compute", ratio},
                                {"step_over_larger", step_s / larger},
                                {"best_over_larger", best_step(compute_s, parameters) / larger},
                                {"waiting_step_over_larger", waiting_s / larger},
                                {"step_over_sum", step_s / (compute_s + communication_s)}};
    if (!job_.replicas) return line;
    link_ = static_cast<std::uint64_t>(link_bytes(all, num_ranks_) / communication_s);
    line["replicas_step_over_larger"] = time_replicas(larger) / larger;
    link_ = 0;
    return line;
  }

  /// A step of a pipeline's replicas that takes about `step_s`.
  double time_replicas(double step_s) {
    replicated_pipeline pipeline(model_, self_);
    timed_steps steps;
    steps.add(pipeline.run(static_cast<int>(std::max(5.0, std::floor(job_.seconds / step_s)))));
    return max_over_ranks(steps.median_s(), *group_);
  }

  const ddp_job& job_;
  node& self_;
  std::atomic<std::uint64_t>& link_;
  int num_ranks_;
  ucx_groups groups_;
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

void train(const ddp_job& job) {
  // Before the node's threads begin, which stay on the same cores.
  if (auto launched = read_launch_environment(process_environment()))
    pin_to_own_cores(launched->rank, launched->world_size, job.threads);
  auto link = std::make_shared<std::atomic<std::uint64_t>>(0);
  auto self = start_launched_node(link);
  set_num_threads(job.threads);
  auto line = ddp_measurement(job, *self, *link).run();
  if (self->rank() == 0) std::printf("%s\n", line.dump().c_str());
}

struct ddp_options {
  std::vector<std::string> models = {"mlp", "gpt"};
  std::vector<int> ranks = {2, 4};
  ddp_job each;  ///< but for the model and the ranks
  int rounds = 5;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool json = false;
};

struct ddp_results {
  std::string rate;  ///< tokens_per_s or samples_per_s
  measurements steps;
  std::map<double, measurements> links;  ///< by communication over computing
};

/// Adds every number of what a process printed.
void add_numbers(const nlohmann::json& printed, measurements& results) {
  for (const auto& [name, value] : printed.items())
    if (value.is_number()) results[name].push_back(value);
}

void measure_round(const ddp_job& job, const ddp_options& options, ddp_results& results) {
  auto own = run_launched_for_object(passively_waiting(worker_command("ddp", job)), job.ranks);
  add_numbers(own, results.steps);
  for (const auto& link : own.value("links", nlohmann::json::array()))
    add_numbers(link, results.links[link.at("communication_over_compute")]);
  results.rate = own.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
  if (options.torch.empty()) return;
  auto torch = run_torch(options.torch, options.torch_script,
                         {{"model", job.model},
                          {"ranks", job.ranks},
                          {"threads", job.threads},
                          {"batch", job.batch},
                          {"seconds", job.seconds}});
  results.steps["torch_" + results.rate].push_back(torch.at(results.rate));
  auto torch_rate = torch.at(results.rate).get<double>();
  results.steps["over_torch"].push_back(own.at(results.rate).get<double>() / torch_rate);
  if (job.replicas)
    results.steps["replicas_over_torch"].push_back(own.at("replicas_" + results.rate).get<double>() /
                                                   torch_rate);
}

void print(const ddp_job& job, const ddp_results& results, report& output) {
  nlohmann::ordered_json line{{"model", job.model}, {"ranks", job.ranks}, {"threads", job.threads}};
  add_spreads(results.steps, line);
  for (const auto& [ratio, link] : results.links) {
    auto& object = line["links"].emplace_back();
    add_spreads(link, object);
    object["communication_over_compute"] = ratio;
  }
  columns shown{
      {"model"}, {"ranks"}, {results.rate}, {"step_s"}, {"step_over_compute"}, {"waiting_step_over_compute"}};
  if (job.replicas)
    shown.insert(shown.end(),
                 {{"replicas_step_s"}, {"replicas_over_ddp"}, {"replicas_over_ddp_by_processor"}});
  if (results.steps.contains("over_torch"))
    shown.insert(shown.end(), {{"torch_" + results.rate}, {"over_torch"}});
  if (results.steps.contains("replicas_over_torch")) shown.push_back({"replicas_over_torch"});
  output.add(shown, line);
  if (results.links.empty()) return;
  columns of_link{{"communication_over_compute"},
                  {"step_over_larger"},
                  {"best_over_larger"},
                  {"waiting_step_over_larger"},
                  {"step_over_sum"}};
  if (job.replicas) of_link.push_back({"replicas_step_over_larger"});
  for (const auto& link : line["links"]) output.add_detail(of_link, link);
}

void run(const ddp_options& options) {
  report output("ddp", options.json);
  for (const auto& model : options.models)
    for (auto ranks : options.ranks) {
      auto job = options.each;
      job.model = model;
      job.ranks = ranks;
      ddp_results results;
      for (int round = 0; round < options.rounds; ++round) measure_round(job, options, results);
      print(job, results, output);
    }
  if (options.torch.empty()) output.note("torch", "no peer was measured (--torch ROOT)");
}

}  // namespace

void add_ddp_bench(const bench_commands& to) {
  auto options = std::make_shared<ddp_options>();
  auto& each = options->each;
  auto& command = *to.bench.add_subcommand("ddp", "Time data-parallel training in processes of this host");
  command.add_option("--model,--models", options->models, "gpt, mlp, cnn, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"gpt", "mlp", "cnn"}));
  command.add_option("--ranks", options->ranks, "Numbers of processes, with commas between")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  command.add_option("--threads", each.threads, "Of each process")->check(CLI::Range(1, 1024));
  command.add_option("--batch", each.batch, "Of each process; 0: the model's own");
  command.add_option("--seconds", each.seconds, "Of each timing");
  command.add_option("--rounds", options->rounds, "Measurements, in turn with the peer's")
      ->check(CLI::Range(1, 1000));
  command.add_flag("--replicas", each.replicas,
                   "Measure a pipeline with a replica in each process beside DataParallel, in turn");
  command.add_option("--bucket-mb", each.bucket_size_mb, "bucket_size_mb of DataParallel");
  command.add_option("--first-bucket-mb", each.first_bucket_mb, "first_bucket_mb");
  command
      .add_option(
          "--links", each.links,
          "Slow links: how long the gradients take over each, in steps' computing, with commas between")
      ->delimiter(',');
  command.add_option("--torch", options->torch,
                     "Measure PyTorch DDP over Gloo beside it, in the system with this root");
  command.add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py");
  command.add_flag("--json", options->json, "One JSON object for each model and number of processes");
  command.callback([options] { run(*options); });
  add_worker(to, "ddp", [](const nlohmann::json& job) { train(job.get<ddp_job>()); });
}

}  // namespace troupe::bench
