#include "runtime/execution/traced_program.hpp"

#include <memory>
#include <stdexcept>

namespace troupe::testing {
namespace {

std::uint64_t mixed(std::uint64_t value, std::uint64_t with) {
  value = (value ^ (with + 0x9E3779B97F4A7C15u + (value << 6) + (value >> 2))) * 0xBF58476D1CE4E5B9u;
  return value ^ (value >> 29);
}

tensor small_number(std::uint64_t value) { return tensor::full({1}, static_cast<float>(value % 4096)); }

std::uint64_t number_in(const tensor& value) {
  if (!value.defined()) throw std::logic_error("[traced_program] expected a tensor");
  std::uint64_t all = 0;
  for (auto each : value.values<float>()) all = mixed(all, static_cast<std::uint64_t>(each));
  return all;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("[traced_program] expected " + what);
}

}  // namespace

traced_program::traced_program(const plan& running, int stage)
    : graph_(running.num_stages, running.edges), stage_(stage) {}

std::vector<tensor> traced_program::forward(const program::microbatch& which, std::vector<tensor> inputs,
                                            tensor targets) {
  auto num_inputs = graph_.takes_samples(stage_) ? 1 : graph_.inputs_of(stage_).size();
  expect(inputs.size() == num_inputs, "an input for each port");
  expect(!targets.defined() || graph_.computes_loss(stage_), "targets at the loss only");
  auto version = which.training ? which.step - static_cast<std::uint64_t>(which.delay) : weights_.size() - 1;
  expect(version < weights_.size() && version + 2 >= weights_.size(), "the newest weights, or those before");
  auto value = mixed(mixed(which.step, static_cast<std::uint64_t>(which.index)), weights_[version]);
  for (const auto& each : inputs) value = mixed(value, number_in(each));
  if (targets.defined()) value = mixed(value, number_in(targets));
  expect(outputs_.emplace(std::pair(which.step, which.index), value).second, "one forward");
  std::vector<tensor> outputs;
  for (int port = 0; port < graph_.num_output_ports(stage_); ++port)
    outputs.push_back(small_number(mixed(value, static_cast<std::uint64_t>(port))));
  if (graph_.computes_loss(stage_) && !targets.defined()) outputs.push_back(small_number(value));
  return outputs;
}

std::vector<tensor> traced_program::backward_input(const program::microbatch& which,
                                                   std::vector<tensor> output_gradients) {
  auto num_ports = static_cast<std::size_t>(graph_.num_output_ports(stage_));
  expect(output_gradients.size() == num_ports, "a gradient for each output port");
  auto value = outputs_.at({which.step, which.index});
  for (const auto& each : output_gradients) value = mixed(value, number_in(each));
  expect(gradients_.emplace(std::pair(which.step, which.index), value).second, "one backward");
  saved_[which.index] = value;
  std::vector<tensor> gradients;
  for (std::size_t port = 0; port < graph_.inputs_of(stage_).size(); ++port)
    gradients.push_back(small_number(mixed(value, port)));
  return gradients;
}

void traced_program::backward_weight(const program::microbatch& which) {
  sum_ = mixed(sum_, saved_.at(which.index));
  saved_.erase(which.index);
}

tensor traced_program::partial_for_reduction(int reduction) {
  expect(saved_.empty(), "all weight gradients before a partial for a reduction");
  return small_number(mixed(sum_, static_cast<std::uint64_t>(reduction)));
}

void traced_program::reduce(int reduction, const std::vector<tensor>& partials) {
  sum_ = mixed(sum_, static_cast<std::uint64_t>(reduction));
  for (const auto& each : partials) sum_ = mixed(sum_, number_in(each));
}

void traced_program::apply(std::uint64_t step) {
  expect(step + 1 == weights_.size() && saved_.empty(), "each step once, after its gradients");
  weights_.push_back(mixed(weights_.back(), sum_));
  sum_ = 0;
}

std::uint64_t traced_program::result() const {
  auto value = mixed(weights_.back(), weights_.size() - 1);
  for (const auto& [which, output] : outputs_) value = mixed(value, output);
  for (const auto& [which, gradient] : gradients_) value = mixed(value, gradient);
  return value;
}

batch traced_samples(const plan& running, std::uint64_t step) {
  batch made{tensor::empty({2 * running.num_microbatches, 1}), tensor::empty({2 * running.num_microbatches})};
  for (auto& each : made.inputs.values<float>()) each = static_cast<float>(++step * 37 % 101);
  for (auto& each : made.targets.values<float>()) each = static_cast<float>(++step * 53 % 103);
  return made;
}

std::vector<std::uint64_t> expected_results(const plan& running, bool training, std::uint64_t num_steps) {
  schedule::stage_graph graph(running.num_stages, running.edges);
  std::vector<std::unique_ptr<traced_program>> stages;
  for (int stage = 0; stage < running.num_stages; ++stage)
    stages.push_back(std::make_unique<traced_program>(running, stage));
  auto at = [&](int stage) -> traced_program& { return *stages[static_cast<std::size_t>(stage)]; };
  auto run_step = [&](const batch& samples, std::uint64_t run, int number) {
    auto step = run * static_cast<std::uint64_t>(running.flush_every) + static_cast<std::uint64_t>(number);
    auto count = running.microbatches_per_step();
    for (int index = 0; index < count; ++index) {
      program::microbatch which{step, index, count, training, number == 0 ? 0 : 1};
      auto row = 2 * (number * count + index);
      std::map<std::pair<int, int>, tensor> outputs;    // [stage, port]
      std::map<std::pair<int, int>, tensor> gradients;  // [stage, input port]
      for (int stage = 0; stage < running.num_stages; ++stage) {
        std::vector<tensor> inputs;
        for (const auto& each : graph.inputs_of(stage))
          inputs.push_back(outputs.at({each.from, each.output}));
        if (inputs.empty()) inputs.push_back(samples.inputs.rows(row, 2));
        auto targets = graph.computes_loss(stage) ? samples.targets.rows(row, 2) : tensor();
        auto made = at(stage).forward(which, inputs, targets);
        for (std::size_t port = 0; port < made.size(); ++port)
          outputs[{stage, static_cast<int>(port)}] = made[port];
      }
      for (int stage = running.num_stages; training && stage-- > 0;) {
        std::vector<tensor> sums(static_cast<std::size_t>(graph.num_output_ports(stage)));
        for (const auto& each : graph.outputs_of(stage)) {
          auto& sum = sums[static_cast<std::size_t>(each.output)];
          if (!sum.defined()) sum = tensor::zeros({1});
          sum.values<float>()[0] += gradients.at({each.to, each.input}).values<float>()[0];
        }
        auto made = at(stage).backward_input(which, sums);
        for (std::size_t port = 0; port < made.size(); ++port)
          gradients[{stage, static_cast<int>(port)}] = made[port];
        at(stage).backward_weight(which);
      }
    }
    if (!training) return;
    for (int reduction = 0; reduction < running.reductions_per_step(); ++reduction) {
      const auto& members = running.reductions[static_cast<std::size_t>(reduction)];
      std::vector<tensor> partials;
      for (int stage : members) partials.push_back(at(stage).partial_for_reduction(reduction));
      for (int stage : members) at(stage).reduce(reduction, partials);
    }
    for (auto& stage : stages) stage->apply(step);
  };
  for (std::uint64_t run = 0; run < num_steps; ++run) {
    auto samples = traced_samples(running, run);
    for (int number = 0; number < running.flush_every; ++number) run_step(samples, run, number);
  }
  std::vector<std::uint64_t> results;
  for (const auto& stage : stages) results.push_back(stage->result());
  return results;
}

}  // namespace troupe::testing
