#include "troupe/fsdp/detail/sharded_model.hpp"

#include <map>
#include <utility>

#include "troupe/ops/convert.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::detail {
namespace {

/// Of one flat, while parameters are put into it.
struct values_in_the_making {
  tensor values;
  std::size_t num_missing = 0;
};

}  // namespace

sharded_model::sharded_model(nn::Module& model, std::vector<unit_of_model> units, sharding_groups groups,
                             const sharded_model_options& options, std::optional<std::uint64_t> seed)
    : groups_(std::move(groups)),
      options_(options),
      units_(make_units(std::move(units))),
      held_(static_cast<std::size_t>(group().size())) {
  for (auto* flat : flats())
    (flat->parameters().front().target->requires_gradient ? trained_ : frozen_).push_back(flat);
  initialize(model, seed);
  values_ = std::make_unique<sharded_values>(units_, group(), options_.values);
  gradients_ = std::make_unique<sharded_gradients>(trained_, groups_, options_.replicas, values_->blocks(),
                                                   options_.keeps_gradient_memory, options_.finds_unused);
}

void sharded_model::own(flat_parameters& flat, const tensor& values) {
  auto parts = layout::cut_into_shards(flat.sizes(), held_, granularity_);
  for (std::size_t member = 0; member < parts.size(); ++member) held_[member] += parts[member];
  flat.own_part_of(values, std::move(parts), group().rank(), !options_.values.frees_values);
}

/// A parameter's memory goes when its values are in those of its unit, and the unit's when the own part is
/// cut out.
void sharded_model::initialize(nn::Module& model, std::optional<std::uint64_t> seed) {
  std::map<const parameter*, std::pair<flat_parameters*, std::size_t>> places;
  std::map<const flat_parameters*, values_in_the_making> begun;
  for (auto* flat : flats())
    for (std::size_t index = 0; index < flat->parameters().size(); ++index)
      places[flat->parameters()[index].target] = {flat, index};
  auto take = [&](const named_parameter& added) {
    auto [flat, index] = places.at(added.target);
    auto& making = begun[flat];
    if (!making.values.defined()) {
      memory_scope counted(memory_category::parameters);
      making = {group().allocate({flat->num_elements()}), flat->parameters().size()};
    }
    flat->view_of(making.values, index).copy_from(added.target->value().to(group().device()));
    added.target->detach();
    added.target->detach_gradient();
    if (--making.num_missing > 0) return;
    for (const auto& each : {groups_.shards, groups_.copies})
      if (each && !seed) each->broadcast(making.values, 0).wait();
    own(*flat, making.values);
    begun.erase(flat);
  };
  if (seed)
    model.materialize(*seed, "", take);
  else
    for (const auto& each : model.named_parameters()) take(each);
  for (const auto& each : model.named_buffers()) each.target->value = each.target->value.to(group().device());
}

void sharded_model::own_whole_parameters() {
  if (std::exchange(granularity_, layout::shard_granularity::tensors) == layout::shard_granularity::tensors)
    return;
  gradients_->finish();
  values_->begin_step();
  held_.assign(held_.size(), 0);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    values_->gather(unit);
    for (const auto& flat : units_[unit].flats) own(*flat, flat->attached());
    values_->let_go();
  }
}

void sharded_model::load(const std::vector<named_tensor>& saved) {
  std::map<std::string, const tensor*> by_name;
  for (const auto& each : saved) by_name[each.name] = &each.value;
  values_->begin_step();
  for (auto* flat : flats()) {
    for (std::size_t piece = 0; piece < flat->pieces().size(); ++piece) {
      const auto& [name, target] = flat->pieces()[piece];
      if (auto found = by_name.find(name); found != by_name.end())
        target->value().copy_from(
            cast(flat->piece_of(*found->second, piece), dtype::f32).to(group().device()));
    }
    for (const auto& each : flat->parameters()) each.target->mark_changed();
  }
  values_->end_step();
}

}  // namespace troupe::detail
