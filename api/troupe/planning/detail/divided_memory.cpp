#include "troupe/planning/detail/divided_memory.hpp"

#include <cstddef>

namespace troupe::detail {

using schedule::of;

namespace {

std::int64_t as_signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace

divided_memory::divided_memory(const cost_profile& profile, const std::vector<layer_run>& stages,
                               const plan& made, const divided_state& divided)
    : divided_(divided) {
  for (const auto& stage : stages) {
    auto& whole = whole_.emplace_back();
    for (int layer = stage.first; layer < stage.last; ++layer) {
      const auto& cost = profile.layers[static_cast<std::size_t>(layer)];
      whole.parameters += cost.parameter_bytes;
      whole.gradients += cost.gradient_bytes;
      whole.optimizer += cost.optimizer_bytes;
      whole.buffers += cost.buffer_bytes;
    }
    for (const auto& each : profile.shared) {
      if (each.first < stage.first || each.layer >= stage.last) continue;
      whole.parameters -= each.parameter_bytes;
      whole.optimizer -= each.optimizer_bytes;
    }
  }
  for (const auto& device : made.devices)
    for (const auto& op : device)
      if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient) {
        first_.try_emplace(op.stage, op);
        last_[op.stage] = op;
      }
}

std::uint64_t divided_memory::share_of(std::uint64_t bytes) const {
  auto shards = static_cast<std::uint64_t>(divided_.num_shards);
  return (bytes + shards - 1) / shards;
}

void divided_memory::add_lasting(int stage, held_memory& held) const {
  const auto& whole = whole_[static_cast<std::size_t>(stage)];
  held.parameters += divided_.frees_parameters ? share_of(whole.parameters) : whole.parameters;
  if (!divided_.frees_gradients) held.gradients += whole.gradients;
  held.optimizer += share_of(whole.optimizer);
  held.buffers += whole.buffers;
}

std::pair<schedule::bytes_by_use, schedule::bytes_by_use> divided_memory::changes(const action& op) const {
  schedule::bytes_by_use begin = {}, end = {};
  const auto& whole = whole_[static_cast<std::size_t>(op.stage)];
  if (divided_.frees_parameters) {
    if (op.kind == action_kind::unshard) of(memory_use::parameters, begin) = as_signed(whole.parameters);
    if (op.kind == action_kind::reshard) of(memory_use::parameters, end) = -as_signed(whole.parameters);
  }
  if (!divided_.frees_gradients) return {begin, end};
  auto all = as_signed(whole.gradients), share = as_signed(share_of(whole.gradients));
  auto is = [&op](const std::map<int, action>& which) {
    auto found = which.find(op.stage);
    return found != which.end() && found->second == op;
  };
  if (is(first_)) of(memory_use::gradients, begin) += all;
  if (is(last_)) of(memory_use::gradients, end) += share - all;  // all leave in it, and the sums come
  if (op.kind == action_kind::apply) of(memory_use::gradients, end) -= share;
  return {begin, end};
}

}  // namespace troupe::detail
