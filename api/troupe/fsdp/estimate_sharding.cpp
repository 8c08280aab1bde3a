#include "troupe/fsdp/estimate_sharding.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/fsdp/detail/checked_options.hpp"
#include "troupe/fsdp/detail/sharded_gradients.hpp"
#include "troupe/fsdp/detail/sharded_unit.hpp"

namespace troupe {
namespace {

/// What an optimizer holds of one parameter of some elements.
struct optimizer_bytes {
  std::size_t of_an_element = 0, of_a_parameter = 0;
  bool is_elementwise = false;
};

optimizer_bytes bytes_of(const optim::Optimizer& optimizer) {
  constexpr std::int64_t many = 64;
  parameter probe("probe", tensor::zeros({many}), tensor::zeros({many}));
  auto state = optim::make_state(optimizer, {{"probe", &probe}});
  optimizer_bytes result{.is_elementwise = state->is_elementwise()};
  for (const auto& each : state->state())
    if (each.value.num_elements() == many)
      result.of_an_element += size_bytes(each.value.dtype());
    else
      result.of_a_parameter += each.value.size_bytes();
  return result;
}

/// A parameter's elements in a part of its flat: what of [first, end) lies in a range.
std::int64_t overlap(std::int64_t first, std::int64_t end, std::int64_t other_first, std::int64_t other_end) {
  return std::max(std::int64_t{0}, std::min(end, other_end) - std::max(first, other_first));
}

std::size_t state_bytes(const detail::flat_parameters& flat, std::int64_t first, std::int64_t end,
                        const optimizer_bytes& each) {
  std::size_t sum = 0;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < flat.sizes().size(); begin += flat.sizes()[i++]) {
    auto count = overlap(first, end, begin, begin + flat.parameters()[i].target->extents.num_elements());
    if (count > 0) sum += static_cast<std::size_t>(count) * each.of_an_element + each.of_a_parameter;
  }
  return sum;
}

std::size_t f32_bytes(std::int64_t num_elements) {
  return static_cast<std::size_t>(num_elements) * sizeof(float);
}

}  // namespace

std::vector<sharding_estimate> estimate_sharding(nn::Module& model, const optim::Optimizer& optimizer,
                                                 int num_members, const fully_sharded_options& options) {
  if (num_members < 1) throw_invalid("estimate_sharding", "at least 1 member", std::to_string(num_members));
  detail::require_in_range(options, num_members);
  auto units = detail::make_units(
      detail::divide_into_units(model, options.units, detail::elements_of_a_unit(options)));
  auto each = bytes_of(optimizer);
  auto granularity =
      each.is_elementwise ? layout::shard_granularity::blocks : layout::shard_granularity::tensors;
  auto flats = detail::flats_of(units);
  auto parts = detail::cut_flats(flats, num_members, granularity);
  std::vector<sharding_estimate> members(static_cast<std::size_t>(num_members));
  std::int64_t largest_trained = 0, num_trained = 0, all_values = 0, all_trained = 0;
  for (std::size_t flat = 0; flat < flats.size(); ++flat) {
    auto is_trained = flats[flat]->parameters().front().target->requires_gradient;
    std::int64_t first = 0;
    for (std::size_t member = 0; member < members.size(); ++member) {
      auto end = first + parts[flat][member];
      members[member].parameters += f32_bytes(end - first);
      if (is_trained) members[member].gradients += f32_bytes(end - first);
      members[member].optimizer += state_bytes(*flats[flat], first, end, each);
      first = end;
    }
    all_values += first;
    if (!is_trained) continue;
    largest_trained = std::max(largest_trained, first);
    all_trained += first;
    ++num_trained;
  }
  std::int64_t largest_unit = 0;
  for (const auto& unit : units) {
    std::int64_t in_unit = 0;
    for (const auto& flat : unit.flats) in_unit += flat->num_elements();
    largest_unit = std::max(largest_unit, in_unit);
  }
  auto num_units = std::ssize(units);
  auto value_blocks =
      options.reshard_after_forward ? std::min(num_units, std::int64_t{1} + options.gather_ahead) : num_units;
  // One more: a unit that a pass uses at both ends, such as tied weights, keeps its gradient all the while.
  auto gradient_blocks = std::min(num_trained, std::int64_t{detail::most_whole_gradients} + 1);
  for (auto& member : members) {
    if (options.strategy == shard_strategy::full)
      member.blocks += f32_bytes(value_blocks * largest_unit);
    else
      member.parameters = f32_bytes(all_values);
    if (options.strategy == shard_strategy::optimizer)
      member.gradients += f32_bytes(all_trained);
    else
      member.blocks += f32_bytes(gradient_blocks * largest_trained);
  }
  return members;
}

}  // namespace troupe
