#include "bench/data_parallel/step_times.hpp"

#include <chrono>
#include <map>
#include <memory>

#include "bench/measure/spread.hpp"

namespace troupe::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t num_steps = 7;

/// Notes when a forward pass first uses a parameter.
class first_use : public pending_update {
 public:
  clock::time_point when;

 protected:
  void finish() override {
    set_pending(false);
    when = clock::now();
  }
};

struct watched {
  std::shared_ptr<first_use> use = std::make_shared<first_use>();
  std::vector<double> used, ready;
};

double seconds(clock::duration since) { return std::chrono::duration<double>(since).count(); }

void time_one(compute_model& model, std::uint64_t step, std::map<parameter*, watched>& all) {
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
}

}  // namespace

std::vector<timed_parameter> time_parameters(compute_model& model, optim::optimizer_state& optimizer) {
  std::map<parameter*, watched> all;
  for (auto* each : model.module->parameters()) each->set_update(all[each].use);
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    time_one(model, step, all);
    optimizer.apply(step);
  }
  auto num_elements = static_cast<double>(model.module->num_parameters());
  std::vector<timed_parameter> result;
  for (const auto& [each, times] : all)
    result.push_back({spread_of(times.used).median, spread_of(times.ready).median,
                      static_cast<double>(each->extents.num_elements()) / num_elements});
  return result;
}

}  // namespace troupe::bench
