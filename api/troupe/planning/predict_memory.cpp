#include "troupe/planning/predict_memory.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "troupe/tensor/detail/caching_allocator.hpp"

namespace troupe {
namespace {

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

/// When tensors for a device arrive, and how many bytes.
using arrivals = std::multimap<double, std::int64_t>;

/// [device] Results are sent when a pass ends, at the latest.
std::vector<arrivals> arrivals_of(const std::vector<stage_memory>& stages, const plan& made,
                                  const timeline& ran) {
  std::vector<arrivals> found(ran.devices.size());
  auto arrives = [&](std::size_t stage, double when, std::int64_t bytes) {
    found[static_cast<std::size_t>(made.device_of_stage[stage])].emplace(when, bytes);
  };
  for (const auto& device : ran.devices)
    for (const auto& done : device) {
      if (done.op.kind == action_kind::forward)
        for (const auto& [to, bytes] : stages[static_cast<std::size_t>(done.op.stage)].to)
          arrives(static_cast<std::size_t>(to), done.end, bytes);
      if (done.op.kind == action_kind::backward || done.op.kind == action_kind::input_gradient)
        for (std::size_t from = 0; from < stages.size(); ++from)
          if (auto back = stages[from].to.find(done.op.stage); back != stages[from].to.end())
            arrives(from, done.end, back->second);
    }
  return found;
}

/// Walks through the actions of one device.
class device_walk {
 public:
  /// `held` has what lasts.
  device_walk(const std::vector<stage_memory>& stages, arrivals arriving, std::int64_t samples,
              held_memory& held)
      : stages_(stages),
        arriving_(std::move(arriving)),
        held_(held),
        lasting_(as_signed(held.parameters + held.gradients + held.optimizer + held.buffers)),
        messages_(samples) {
    note({});
  }

  void run(const timed_action& done) {
    const auto& stage = stages_[static_cast<std::size_t>(done.op.stage)];
    receive_until(done.end);
    switch (done.op.kind) {
      case action_kind::forward:
        return run_forward(stage);
      case action_kind::backward:
        run_inputs(stage);
        return run_weights(stage);
      case action_kind::input_gradient:
        return run_inputs(stage);
      case action_kind::weight_gradient:
        return run_weights(stage);
      case action_kind::apply:
        return note(stage.apply);
      case action_kind::reduce_gradient:
        return note(stage.reduction);
      case action_kind::all_reduce:
        return;  // jobs with replicas hold more: not predicted
    }
  }

 private:
  void run_forward(const stage_memory& stage) {
    take(stage.incoming);
    note(stage.forward);
    kept_ += stage.forward.change;
    held_.activations = std::max(held_.activations, not_negative(kept_));
  }
  void run_inputs(const stage_memory& stage) {
    take(stage.output_gradients());
    note(stage.input_gradient);
    kept_ += stage.input_gradient.change;
  }
  void run_weights(const stage_memory& stage) {
    note(stage.weight_gradient);
    kept_ -= stage.kept_for_weights();  // nothing of the microbatch is left
  }

  void receive_until(double when) {
    auto end = arriving_.upper_bound(when);
    for (auto each = arriving_.begin(); each != end; ++each) messages_ += each->second;
    arriving_.erase(arriving_.begin(), end);
    held_.messages = std::max(held_.messages, not_negative(messages_));
  }
  void take(std::int64_t bytes) {
    messages_ -= bytes;
    kept_ += bytes;
  }
  void note(const pass_effect& pass) {
    held_.working = std::max(held_.working, not_negative(pass.peak - std::max(pass.change, std::int64_t{0})));
    held_.peak = std::max(held_.peak,
                          not_negative(lasting_ + kept_ + std::max(messages_, std::int64_t{0}) + pass.peak));
  }

  const std::vector<stage_memory>& stages_;
  arrivals arriving_;
  held_memory& held_;
  std::int64_t lasting_;
  std::int64_t messages_;  ///< below 0: a backward has handed some on before its end
  std::int64_t kept_ = 0;
};

void add_lasting(const cost_profile& profile, const layer_run& stage, held_memory& held) {
  for (int layer = stage.first; layer < stage.last; ++layer) {
    const auto& cost = profile.layers[static_cast<std::size_t>(layer)];
    held.parameters += cost.parameter_bytes;
    held.gradients += cost.gradient_bytes;
    held.optimizer += cost.optimizer_bytes;
    held.buffers += cost.buffer_bytes;
  }
  for (const auto& each : profile.shared) {
    if (each.first < stage.first || each.layer >= stage.last) continue;
    held.parameters -= each.parameter_bytes;
    held.optimizer -= each.optimizer_bytes;
  }
}

}  // namespace

std::vector<held_memory> predict_memory(const cost_profile& profile, const std::vector<layer_run>& stages,
                                        const plan& made, const timeline& ran) {
  auto memories = memories_of(profile, stages);
  auto arriving = arrivals_of(memories, made, ran);
  std::vector<held_memory> held(ran.devices.size());
  std::vector<std::int64_t> samples(held.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    auto device = static_cast<std::size_t>(made.device_of_stage[stage]);
    add_lasting(profile, stages[stage], held[device]);
    samples[device] =
        std::max(samples[device], kept_batches * made.num_microbatches * memories[stage].samples);
  }
  for (std::size_t device = 0; device < held.size(); ++device) {
    device_walk walk(memories, std::move(arriving[device]), samples[device], held[device]);
    for (const auto& done : ran.devices[device]) walk.run(done);
  }
  return held;
}

}  // namespace troupe
