#include "troupe/planning/predict_memory.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "troupe/planning/detail/divided_memory.hpp"
#include "troupe/schedule/simulation/memory_ledger.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"

namespace troupe {
namespace {

using schedule::memory_effect;
using schedule::of;

/// Of the loader (loader_actor), also in short jobs.
constexpr std::int64_t kept_batches = 4;

/// What is held changes by `change` in a pass, and exceeds what was held before by `peak` meanwhile.
struct pass_effect {
  std::int64_t change = 0;
  std::int64_t peak = 0;
  void then(std::int64_t next_change, std::int64_t next_peak) {
    peak = std::max(peak, change + next_peak);
    change += next_change;
    peak = std::max(peak, change);
  }
};

/// What the passes of a microbatch do to the memory of the stage's device. Values and gradients that come in
/// are held before their pass; those that go out are the receiver's after it.
struct stage_memory {
  pass_effect forward, input_gradient, weight_gradient, reduction, apply;
  std::int64_t incoming = 0;       ///< bytes of the values that other stages send, for one microbatch
  std::int64_t outgoing = 0;       ///< values for other stages, each once
  std::int64_t samples = 0;        ///< bytes of the samples of one microbatch
  std::map<int, std::int64_t> to;  ///< what goes to each later stage, and comes back as gradients
  /// Gradients of all uses.
  std::int64_t output_gradients() const {
    std::int64_t sum = 0;
    for (const auto& [stage, bytes] : to) sum += bytes;
    return sum;
  }
  /// From the forward to the backward, and from the input gradient to the weight gradient.
  std::int64_t kept() const { return incoming + forward.change; }
  std::int64_t kept_for_weights() const { return kept() + output_gradients() + input_gradient.change; }
};

std::int64_t rounded(std::uint64_t bytes) { return static_cast<std::int64_t>(block_bytes(bytes)); }
std::int64_t as_signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }
std::uint64_t not_negative(std::int64_t bytes) {
  return static_cast<std::uint64_t>(std::max(bytes, std::int64_t{0}));
}

int stage_of(int layer, const std::vector<layer_run>& stages) {
  auto found = std::ranges::upper_bound(stages, std::max(layer, 0), {}, &layer_run::first);
  return static_cast<int>(found - stages.begin()) - 1;
}

/// [stage] A value goes once to each stage that uses it.
void add_values(const cost_profile& profile, const std::vector<layer_run>& stages,
                std::vector<stage_memory>& memories) {
  std::set<std::tuple<int, int, int>> known;
  std::set<std::pair<int, int>> sent;
  for (const auto& value : profile.values) {
    auto to = stage_of(value.to, stages);
    auto is_sample = value.from == layer_value::model_input;
    if ((!is_sample && stage_of(value.from, stages) == to) ||
        !known.insert({value.from, value.output, to}).second)
      continue;
    auto bytes = rounded(value.bytes);
    auto& receiver = memories[static_cast<std::size_t>(to)];
    (is_sample ? receiver.samples : receiver.incoming) += bytes;
    if (is_sample) continue;
    auto& sender = memories[static_cast<std::size_t>(stage_of(value.from, stages))];
    sender.to[to] += bytes;
    if (sent.insert({value.from, value.output}).second) sender.outgoing += bytes;
  }
}

/// The gradients of a weight that several stages use are sent to all of them, and added there.
void add_reductions(const cost_profile& profile, const std::vector<layer_run>& stages,
                    std::vector<stage_memory>& memories) {
  std::map<int, std::vector<int>> users_of;  // by first layer, with itself
  std::map<int, std::int64_t> bytes_of;
  for (const auto& each : profile.shared) {
    auto& users = users_of.try_emplace(each.first, 1, each.first).first->second;
    users.push_back(each.layer);
    bytes_of[each.first] = as_signed(each.parameter_bytes);
  }
  for (const auto& [first, users] : users_of) {
    std::set<int> sharing;
    for (auto layer : users) sharing.insert(stage_of(layer, stages));
    if (sharing.size() == 1) continue;
    auto all = static_cast<std::int64_t>(users.size()) * bytes_of[first];
    for (auto stage : sharing) memories[static_cast<std::size_t>(stage)].reduction.peak += all;
  }
}

void add_passes(std::span<const layer_cost> layers, stage_memory& memory) {
  for (const auto& layer : layers) {
    memory.forward.then(as_signed(layer.activation_bytes), as_signed(layer.passes.forward_peak));
    memory.apply.then(0, as_signed(layer.passes.apply_peak));
  }
  memory.forward.change -= memory.outgoing;
  for (const auto& layer : layers | std::views::reverse)
    memory.input_gradient.then(layer.passes.input_gradient_change,
                               as_signed(layer.passes.input_gradient_peak));
  memory.input_gradient.change -= memory.incoming;
  for (const auto& layer : layers | std::views::reverse)
    memory.weight_gradient.then(layer.passes.weight_gradient_change,
                                as_signed(layer.passes.weight_gradient_peak));
}

std::vector<stage_memory> memories_of(const cost_profile& profile, const std::vector<layer_run>& stages) {
  std::vector<stage_memory> memories(stages.size());
  add_values(profile, stages, memories);
  add_reductions(profile, stages, memories);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    auto [first, last, device] = stages[stage];
    add_passes(std::span(profile.layers)
                   .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)),
               memories[stage]);
  }
  return memories;
}

/// Where the stages compute.
class stage_places {
 public:
  stage_places(const plan& made, const std::vector<compute_place>& of_devices)
      : made_(made), of_devices_(of_devices) {}

  bool is_on_gpu(std::size_t stage) const { return of(stage).where.type == device::kind::cuda; }
  /// Whether `to` holds what `from` sends it before it uses it, rather than getting a copy then.
  bool holds_messages(std::size_t from, std::size_t to) const { return !is_on_gpu(to) || of(from) == of(to); }

 private:
  compute_place of(std::size_t stage) const {
    return of_devices_.empty() ? compute_place()
                               : of_devices_[static_cast<std::size_t>(made_.device_of_stage[stage])];
  }

  const plan& made_;
  const std::vector<compute_place>& of_devices_;
};

/// Results are sent when a pass ends, at the latest.
std::vector<schedule::memory_arrival> arrivals_of(const std::vector<stage_memory>& stages, const plan& made,
                                                  const timeline& ran, const stage_places& places) {
  std::vector<schedule::memory_arrival> found;
  auto arrives = [&](std::size_t from, std::size_t to, double when, std::int64_t bytes) {
    if (places.holds_messages(from, to)) found.push_back({when, made.device_of_stage[to], bytes});
  };
  for (const auto& device : ran.devices)
    for (const auto& done : device) {
      auto stage = static_cast<std::size_t>(done.op.stage);
      if (done.op.kind == action_kind::forward)
        for (const auto& [to, bytes] : stages[stage].to)
          arrives(stage, static_cast<std::size_t>(to), done.end, bytes);
      if (done.op.kind == action_kind::backward || done.op.kind == action_kind::input_gradient)
        for (std::size_t from = 0; from < stages.size(); ++from)
          if (auto back = stages[from].to.find(done.op.stage); back != stages[from].to.end())
            arrives(stage, from, done.end, back->second);
    }
  return found;
}

/// The bytes of the messages that a pass uses.
struct used_messages {
  std::int64_t held = 0;    ///< taken over
  std::int64_t copied = 0;  ///< the device gets copies of them
};

/// A pass that keeps `kept` more for the backward.
memory_effect effect_of(const pass_effect& pass, const used_messages& used, std::int64_t kept) {
  memory_effect effect{.peak = pass.peak + used.copied,
                       .working = pass.peak - std::max(pass.change, std::int64_t{0})};
  of(memory_use::messages, effect.change) = -used.held;
  of(memory_use::activations, effect.change) = kept;
  return effect;
}

std::vector<memory_effect> effects_of(const action& op, const std::vector<stage_memory>& stages,
                                      const stage_places& places) {
  auto number = static_cast<std::size_t>(op.stage);
  const auto& stage = stages[number];
  used_messages inputs, gradients;
  auto use = [&](used_messages& used, std::size_t from, std::int64_t bytes) {
    (places.holds_messages(from, number) ? used.held : used.copied) += bytes;
  };
  for (std::size_t from = 0; from < stages.size(); ++from)
    if (auto sent = stages[from].to.find(op.stage); sent != stages[from].to.end())
      use(inputs, from, sent->second);
  for (const auto& [from, bytes] : stage.to) use(gradients, static_cast<std::size_t>(from), bytes);
  // A GPU gets copies of the samples too.
  auto samples = places.is_on_gpu(number) ? stage.samples : 0;
  inputs.copied += samples;
  auto of_inputs = [&] {
    return effect_of(stage.input_gradient, gradients, stage.output_gradients() + stage.input_gradient.change);
  };
  // Nothing of the microbatch is left.
  auto of_weights = [&] { return effect_of(stage.weight_gradient, {}, -stage.kept_for_weights() - samples); };
  switch (op.kind) {
    case action_kind::forward:
      return {effect_of(stage.forward, inputs, stage.kept() + samples)};
    case action_kind::backward:
      return {of_inputs(), of_weights()};
    case action_kind::input_gradient:
      return {of_inputs()};
    case action_kind::weight_gradient:
      return {of_weights()};
    case action_kind::apply:
      return {effect_of(stage.apply, {}, 0)};
    case action_kind::reduce_gradient:
      return {effect_of(stage.reduction, {}, 0)};
    case action_kind::all_reduce:  // jobs with replicas hold more: not predicted
    case action_kind::unshard:     // divided_memory
    case action_kind::reshard:
      break;
  }
  return {};
}

}  // namespace

std::vector<held_memory> predict_memory(const cost_profile& profile, const std::vector<layer_run>& stages,
                                        const plan& made, const timeline& ran,
                                        const std::vector<compute_place>& places,
                                        const divided_state& divided) {
  auto memories = memories_of(profile, stages);
  stage_places placed(made, places);
  detail::divided_memory states(profile, stages, made, divided);
  auto effects = [&](const action& op) {
    auto all = effects_of(op, memories, placed);
    auto [begin, end] = states.changes(op);
    all.insert(all.begin(), {.change = begin});
    all.push_back({.change = end});
    return all;
  };
  schedule::memory_costs costs{
      .effects_of = effects, .at_first = {}, .arriving = arrivals_of(memories, made, ran, placed)};
  std::vector<held_memory> held(ran.devices.size());
  std::vector<std::int64_t> samples(held.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    auto device = static_cast<std::size_t>(made.device_of_stage[stage]);
    states.add_lasting(static_cast<int>(stage), held[device]);
    if (placed.is_on_gpu(stage)) continue;
    samples[device] =
        std::max(samples[device], kept_batches * made.num_microbatches * memories[stage].samples);
  }
  for (std::size_t device = 0; device < held.size(); ++device) {
    auto& first = costs.at_first.emplace_back();
    of(memory_use::parameters, first) = as_signed(held[device].parameters + held[device].buffers);
    of(memory_use::gradients, first) = as_signed(held[device].gradients);
    of(memory_use::optimizer, first) = as_signed(held[device].optimizer);
    of(memory_use::messages, first) = samples[device];
  }
  auto ledgers = schedule::memory_ledger(ran, costs);
  for (std::size_t device = 0; device < held.size(); ++device) {
    const auto& most = ledgers[device].most;
    for (const auto& entry : ledgers[device].entries)
      if (entry.op.kind == action_kind::forward)
        held[device].activations =
            std::max(held[device].activations, not_negative(of(memory_use::activations, entry.held)));
    held[device].parameters = not_negative(of(memory_use::parameters, most)) - held[device].buffers;
    held[device].gradients = not_negative(of(memory_use::gradients, most));
    held[device].messages = not_negative(of(memory_use::messages, most));
    held[device].working = not_negative(of(memory_use::working, most));
    held[device].peak = not_negative(ledgers[device].peak);
    held[device].ledger = std::move(ledgers[device].entries);
  }
  return held;
}

}  // namespace troupe
