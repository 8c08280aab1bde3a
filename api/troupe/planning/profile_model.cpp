#include "troupe/planning/profile_model.hpp"

#include <time.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "troupe/contents/step_counts.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/nested_layers.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/pipeline/detail/model_cut.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/detail/stage_reductions.hpp"
#include "troupe/pipeline/detail/tied_weights.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe {
namespace {

/// A prediction assumes a core for each thread. With one thread the time is that of its processor, which
/// leaves out when other programs had the core; what helper threads take only shows as time that passes.
double seconds_now(device place) {
  synchronize(place);
  timespec now{};
  bool is_of_processor = num_threads() == 1 && place.type == device::kind::cpu;
  ::clock_gettime(is_of_processor ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// How long `run` takes at `place`.
template <class Run>
double seconds_of(device place, Run run) {
  auto begin = seconds_now(place);
  run();
  return seconds_now(place) - begin;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// What a pass does to the memory of an account at its place, in bytes.
struct memory_change {
  std::int64_t change = 0;
  std::uint64_t peak = 0;  ///< above what was held before
};

template <class Run>
memory_change change_during(const memory_account& account, device place, Run run) {
  account.reset_peak();
  auto before = account.statistics(place.type).current;
  run();
  auto after = account.statistics(place.type);
  return {static_cast<std::int64_t>(after.current) - static_cast<std::int64_t>(before), after.peak - before};
}

/// The times of one layer, a value for each pass.
struct layer_times {
  std::vector<double> forward, input_gradient, weight_gradient, apply;
};

/// Of the whole model. A tied weight has its owner's name in each stage.
struct weight_names {
  std::set<std::string> parameters;
  std::set<std::string> weights;  ///< names of parameters and buffers
};

std::vector<stage_range> one_stage_a_layer(const nn::Graph& model) {
  std::vector<stage_range> partition;
  for (int layer = 0; layer < model.size(); ++layer) partition.push_back({layer, layer + 1});
  return partition;
}

/// A model whose layers run one after the other, each as a stage of its own.
class layer_by_layer {
 public:
  layer_by_layer(const Pipeline& pipeline, const batch& samples, const profile_options& options)
      : place_(options.place),
        model_(nn::detail::with_all_nested_layers(pipeline.model())),
        samples_(samples),
        cut_(detail::cut_model(model_.wiring(), one_stage_a_layer(model_))),
        times_(static_cast<std::size_t>(model_.size())),
        activation_bytes_(times_.size(), 0),
        passes_(times_.size()),
        values_(cut_.edges.size()),
        gradients_(cut_.edges.size()),
        value_bytes_(cut_.edges.size(), 0) {
    auto partition = one_stage_a_layer(model_);
    reductions_ = detail::reductions_of(model_, partition, pipeline.numerics()).all;
    auto make = detail::make_module_programs(model_, partition,
                                             {.loss = pipeline.loss(),
                                              .optimizer = pipeline.optimizer(),
                                              .seed = options.seed,
                                              .numerics = pipeline.numerics(),
                                              .initial_weights = pipeline.initial_weights(),
                                              .place = [this](const layout::cell&) { return place_; }});
    account_scope charged(account_);
    for (int layer = 0; layer < model_.size(); ++layer) programs_.push_back(make({.stage = layer}));
  }

  /// One step of one microbatch.
  void run(std::uint64_t step) {
    account_scope charged(account_);
    program::microbatch which{.step = step};
    for (std::size_t layer = 0; layer < programs_.size(); ++layer) forward(layer, which);
    for (auto layer = programs_.size(); layer-- > 0;) backward(layer, which);
    for (std::size_t number = 0; number < reductions_.size(); ++number) reduce(static_cast<int>(number));
    for (std::size_t layer = 0; layer < programs_.size(); ++layer)
      passes_[layer].apply_peak =
          change_during(account_, place_, [&] {
            times_[layer].apply.push_back(seconds_of(place_, [&] { programs_[layer]->apply(step); }));
          }).peak;
  }

  void forget_times() { std::ranges::fill(times_, layer_times()); }

  std::vector<layer_cost> costs() {
    std::vector<layer_cost> result;
    auto names = names_of_weights();
    for (std::size_t layer = 0; layer < programs_.size(); ++layer) {
      const auto& times = times_[layer];
      layer_cost cost{.name = model_.name_of(static_cast<int>(layer)),
                      .forward_s = median(times.forward),
                      .input_gradient_s = median(times.input_gradient),
                      .weight_gradient_s = median(times.weight_gradient),
                      .apply_s = median(times.apply),
                      .activation_bytes = activation_bytes_[layer],
                      .passes = passes_[layer]};
      add_state(layer, names, cost);
      result.push_back(std::move(cost));
    }
    return result;
  }

  /// The uses of a tied weight but for the first; each layer's optimizer state is taken to be proportional.
  std::vector<shared_weight> shared(const std::vector<layer_cost>& costs) const {
    std::vector<shared_weight> result;
    for (const auto& weight : detail::tied_weights_of(model_)) {
      const auto& first = weight.uses.front();
      for (std::size_t use = 1; use < weight.uses.size(); ++use) {
        const auto& cost = costs[static_cast<std::size_t>(weight.uses[use].layer)];
        auto bytes = std::min(bytes_of_weight(weight.uses[use]), cost.parameter_bytes);
        if (weight.uses[use].layer == first.layer || cost.parameter_bytes == 0) continue;
        result.push_back({first.layer, weight.uses[use].layer, bytes,
                          part_of(cost.optimizer_bytes, bytes, cost.parameter_bytes)});
      }
    }
    return result;
  }

  std::vector<layer_value> values() const {
    std::vector<layer_value> result;
    for (std::size_t edge = 0; edge < cut_.edges.size(); ++edge) {
      const auto& from = cut_.stages[static_cast<std::size_t>(cut_.edges[edge].from)];
      const auto& source = from.outputs[static_cast<std::size_t>(cut_.edges[edge].output)];
      result.push_back({source.node, source.output, cut_.edges[edge].to, value_bytes_[edge]});
    }
    auto key = [](const layer_value& value) { return std::tuple(value.to, value.from, value.output); };
    std::ranges::sort(result, {}, key);
    auto [first, last] = std::ranges::unique(result);  // several uses in one layer
    result.erase(first, last);
    return result;
  }

 private:
  /// The edges to layer `to`, by input port.
  std::vector<std::size_t> edges_to(std::size_t to) const {
    std::vector<std::size_t> found;
    for (std::size_t edge = 0; edge < cut_.edges.size(); ++edge)
      if (cut_.edges[edge].to == static_cast<int>(to)) found.push_back(edge);
    std::ranges::sort(found, {}, [this](std::size_t edge) { return cut_.edges[edge].input; });
    return found;
  }

  void forward(std::size_t layer, const program::microbatch& which) {
    std::vector<tensor> inputs;
    if (cut_.stages[layer].takes_samples) inputs.push_back(samples_.inputs);
    for (auto edge : edges_to(layer)) inputs.push_back(std::exchange(values_[edge], {}));
    auto is_last = layer + 1 == programs_.size();
    std::vector<tensor> outputs;
    auto held = change_during(account_, place_, [&] {
      times_[layer].forward.push_back(seconds_of(place_, [&] {
        outputs = programs_[layer]->forward(which, std::move(inputs), is_last ? samples_.targets : tensor());
      }));
    });
    activation_bytes_[layer] = static_cast<std::uint64_t>(std::max(held.change, std::int64_t{0}));
    passes_[layer].forward_peak = held.peak;
    for (std::size_t edge = 0; edge < cut_.edges.size(); ++edge)
      if (cut_.edges[edge].from == static_cast<int>(layer)) {
        values_[edge] = outputs[static_cast<std::size_t>(cut_.edges[edge].output)];

        value_bytes_[edge] = values_[edge].size_bytes();
      }
  }

  void backward(std::size_t layer, const program::microbatch& which) {
    auto is_last = layer + 1 == programs_.size();
    std::vector<tensor> output_gradients(is_last ? 0 : cut_.stages[layer].outputs.size());
    for (auto edge = cut_.edges.size(); edge-- > 0;) {
      if (cut_.edges[edge].from != static_cast<int>(layer)) continue;
      auto& sum = output_gradients[static_cast<std::size_t>(cut_.edges[edge].output)];
      auto gradient = std::exchange(gradients_[edge], {});
      if (sum.defined() && gradient.defined())
        sum = add(sum, gradient);
      else if (gradient.defined())
        sum = std::move(gradient);
    }
    std::vector<tensor> input_gradients;
    auto held = change_during(account_, place_, [&] {
      times_[layer].input_gradient.push_back(seconds_of(place_, [&] {
        input_gradients = programs_[layer]->backward_input(which, std::move(output_gradients));
      }));
    });
    passes_[layer].input_gradient_change = held.change;
    passes_[layer].input_gradient_peak = held.peak;
    if (auto edges = edges_to(layer); !edges.empty())
      for (std::size_t port = 0; port < edges.size(); ++port)
        gradients_[edges[port]] = std::move(input_gradients[port]);
    held = change_during(account_, place_, [&] {
      times_[layer].weight_gradient.push_back(
          seconds_of(place_, [&] { programs_[layer]->backward_weight(which); }));
    });
    passes_[layer].weight_gradient_change = held.change;
    passes_[layer].weight_gradient_peak = held.peak;
  }

  void reduce(int number) {
    const auto& stages = reductions_[static_cast<std::size_t>(number)].stages;
    std::vector<tensor> partials;
    for (auto stage : stages)
      partials.push_back(programs_[static_cast<std::size_t>(stage)]->partial_for_reduction(number));
    for (auto stage : stages) programs_[static_cast<std::size_t>(stage)]->reduce(number, partials);
  }

  /// What the layer keeps from step to step.
  void add_state(std::size_t layer, const weight_names& names, layer_cost& cost) {
    for (const auto& each : programs_[layer]->state()) {
      if (each.name.ends_with(steps_suffix)) continue;  // one block of the whole stage (moment_state)
      auto bytes = block_bytes(each.value.size_bytes());
      if (names.parameters.contains(each.name))
        cost.parameter_bytes += bytes;
      else
        (names.weights.contains(each.name) ? cost.buffer_bytes : cost.optimizer_bytes) += bytes;
    }
    cost.gradient_bytes = cost.parameter_bytes;
  }

  static std::uint64_t part_of(std::uint64_t all, std::uint64_t part, std::uint64_t whole) {
    return static_cast<std::uint64_t>(static_cast<double>(all) *
                                      (static_cast<double>(part) / static_cast<double>(whole)));
  }

  std::uint64_t bytes_of_weight(const detail::tied_weight::use& use) const {
    auto described = model_[use.layer]->clone();
    for (const auto& each : described->named_parameters(model_.prefix_of(use.layer)))
      if (each.name == use.name)
        return block_bytes(static_cast<std::size_t>(each.target->extents.num_elements()) * sizeof(float));
    return 0;
  }

  weight_names names_of_weights() {
    weight_names names;
    for (const auto& program : programs_) {
      for (const auto& each : program->parameters()) names.parameters.insert(each.name);
      for (const auto& each : program->weights()) names.weights.insert(each.name);
    }
    return names;
  }

  device place_;
  memory_account account_ = memory_account::make();
  nn::Graph model_;
  const batch& samples_;
  detail::model_cut cut_;
  std::vector<std::unique_ptr<program::stage_program>> programs_;
  std::vector<schedule::reduction> reductions_;
  std::vector<layer_times> times_;               // [layer]
  std::vector<std::uint64_t> activation_bytes_;  // [layer]
  std::vector<pass_memory> passes_;              // [layer]
  std::vector<tensor> values_, gradients_;       // [edge]
  std::vector<std::uint64_t> value_bytes_;       // [edge]
};

}  // namespace

cost_profile profile_model(const Pipeline& pipeline, const batch& microbatch,
                           const profile_options& options) {
  constexpr auto function = "profile_model";
  if (options.num_repeats < 1)
    throw_invalid(function, "at least 1 repeat", std::to_string(options.num_repeats));
  if (!microbatch.inputs.defined() || microbatch.inputs.shape().rank() < 1 ||
      microbatch.inputs.num_elements() == 0)
    throw_invalid(function, "a microbatch with samples", "none");
  if (!microbatch.targets.defined()) throw_invalid(function, "a microbatch with targets", "none");
  require_device(options.place);
  layer_by_layer model(pipeline, microbatch, options);
  model.run(0);
  model.forget_times();
  for (int repeat = 0; repeat < options.num_repeats; ++repeat)
    model.run(static_cast<std::uint64_t>(repeat) + 1);
  cost_profile profile{
      .microbatch_samples = microbatch.inputs.shape()[0], .layers = model.costs(), .values = model.values()};
  profile.shared = model.shared(profile.layers);
  check_profile(profile);
  return profile;
}

}  // namespace troupe
