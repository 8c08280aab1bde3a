#include "bench/data_parallel/best_step.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>

#include "bench/compute/compute_models.hpp"
#include "bench/measure/spread.hpp"

namespace troupe::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t num_steps = 7;

/// Records when a forward pass first uses a parameter.
class first_use : public pending_update {
 public:
  clock::time_point when;

 protected:
  void finish() override {
    set_pending(false);
    when = clock::now();
  }
};

struct parameter_times {
  std::shared_ptr<first_use> use = std::make_shared<first_use>();
  std::vector<double> used, ready;
};

double seconds(clock::duration since) { return std::chrono::duration<double>(since).count(); }

/// Returns the seconds of the step.
double time_one(compute_model& model, optim::optimizer_state& optimizer, std::uint64_t step,
                std::map<parameter*, parameter_times>& all) {
  for (auto& [each, times] : all) times.use->set_pending(true);
  auto begin = clock::now();
  auto loss = loss_of(model, step, [&](const variable& x) { return model.module->forward(x); }).loss;
  for (auto& [each, times] : all)
    if (!times.use->is_pending()) times.used.push_back(seconds(times.use->when - begin));
  auto is_ready = [&](parameter& which) {
    auto& ready = all.at(&which).ready;
    if (ready.size() == step) ready.push_back(seconds(clock::now() - begin));
  };
  loss.backward(
      {}, {.on_gradient = is_ready, .on_rows = [&](parameter& which, std::int64_t) { is_ready(which); }});
  optimizer.apply(step);
  return seconds(clock::now() - begin);
}

}  // namespace

double best_step(double compute, std::span<const timed_parameter> parameters) {
  std::vector<timed_parameter> in_order(parameters.begin(), parameters.end());
  std::ranges::sort(in_order, {}, &timed_parameter::used);
  double least = compute, moves = 0, ready = std::numeric_limits<double>::infinity();
  for (const auto& each : in_order) {
    moves += each.moves;
    ready = std::min(ready, each.ready);
    least = std::max({least, moves, moves + ready - each.used});
  }
  return least;
}

std::vector<timed_parameter> time_parameters(compute_model& model, optim::optimizer_state& optimizer) {
  std::map<parameter*, parameter_times> all;
  for (auto* each : model.module->parameters()) each->set_update(all[each].use);
  std::vector<double> steps;
  for (std::uint64_t step = 0; step < num_steps; ++step)
    steps.push_back(time_one(model, optimizer, step, all));
  auto step_s = median_of(std::move(steps));
  auto num_elements = static_cast<double>(model.module->num_parameters());
  std::vector<timed_parameter> result;
  for (const auto& [each, times] : all)
    result.push_back({median_of(times.used) / step_s, median_of(times.ready) / step_s,
                      static_cast<double>(each->extents.num_elements()) / num_elements});
  return result;
}

}  // namespace troupe::bench
