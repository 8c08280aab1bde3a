#include "troupe/fsdp/detail/sharded_model.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
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
    : groups_(std::move(groups)), options_(options), units_(make_units(std::move(units))) {
  for (auto* flat : flats())
    (flat->parameters().front().target->requires_gradient ? trained_ : frozen_).push_back(flat);
  cut();
  initialize(model, seed);
  values_ = std::make_unique<sharded_values>(units_, group(), calls_, options_.values);
  gradients_ =
      std::make_unique<sharded_gradients>(trained_, groups_, options_.replicas, values_->blocks(), calls_,
                                          options_.keeps_gradient_memory, options_.finds_unused);
}

sharded_model::~sharded_model() {
  try {
    order_call_.wait();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
}

void sharded_model::cut() {
  auto all = flats();
  auto parts = cut_flats(all, group().size(), granularity_);
  for (std::size_t i = 0; i < all.size(); ++i) parts_[all[i]] = std::move(parts[i]);
}

void sharded_model::own(flat_parameters& flat, const tensor& values) {
  flat.own_part_of(values, parts_.at(&flat), group().rank(), !options_.values.frees_values);
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
    added.target->has_gradient = false;
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
  if (gradients_->has_sums())
    throw std::logic_error(
        "[FullyShardedDataParallel::make_optimizer] expected a call between steps, got one between a "
        "backward pass and the optimizer's step");
  if (granularity_ == layout::shard_granularity::tensors) return;
  granularity_ = layout::shard_granularity::tensors;
  ++num_cuts_;
  gradients_->finish();
  values_->begin_step();
  cut();
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    values_->gather(unit);
    for (const auto& flat : units_[unit].flats) own(*flat, flat->attached());
    values_->let_go();
  }
}

void sharded_model::begin_order_check() {
  order_call_.wait();
  auto own = tensor::from(std::vector{std::bit_cast<std::int64_t>(calls_.hash())}, {1});
  orders_ = tensor::zeros({group().size()}, dtype::i64).to(group().device());
  order_call_ = group().all_gather(own.to(group().device()), orders_);
}

void sharded_model::finish_order_check() {
  order_call_.wait();
  order_call_ = {};
  if (!orders_.defined()) return;
  auto orders = std::exchange(orders_, {}).to(device{});
  auto hashes = orders.values<std::int64_t>();
  auto other = std::ranges::find_if(hashes, [&](std::int64_t hash) { return hash != hashes[0]; });
  if (other == hashes.end()) return;
  auto problem = "rank " + to_string(group().group().rank_of(static_cast<int>(other - hashes.begin()))) +
                 " has used other parts of the model than rank " + to_string(group().group().rank_of(0)) +
                 ", or in another order";
  groups_.abort(problem);
  throw std::logic_error(
      "[FullyShardedDataParallel] expected the same passes on all members, since each gathers what it "
      "uses: " +
      problem);
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
