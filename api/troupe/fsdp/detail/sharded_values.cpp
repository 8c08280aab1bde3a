#include "troupe/fsdp/detail/sharded_values.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "troupe/tensor/memory.hpp"

namespace troupe::detail {
namespace {

constexpr auto no_unit = static_cast<std::size_t>(-1);

std::vector<std::size_t> ascending(std::size_t count) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

std::vector<std::size_t> descending(std::size_t count) {
  auto result = ascending(count);
  std::ranges::reverse(result);
  return result;
}

}  // namespace

class sharded_values::unit_update : public pending_update {
 public:
  unit_update(sharded_values& all, std::size_t unit) : all_(&all), unit_(unit) {}
  void forget() { all_ = nullptr; }

 protected:
  void finish() override {
    require_owner();
    all_->finish_gather(unit_);
  }
  void bring_values() override {
    if (all_) return all_->read(unit_);
    if (!is_whole_) require_owner();
  }

 private:
  friend class sharded_values;
  void require_owner() const {
    if (all_) return;
    throw std::logic_error(
        "[FullyShardedDataParallel] expected it to live as long as its model is used, got a model whose "
        "values went with it: take state_dict() before, and load it into another model");
  }

  sharded_values* all_;  ///< null when it is gone
  std::size_t unit_;
  bool is_whole_ = false;  ///< then
};

sharded_values::sharded_values(std::vector<sharded_unit>& units, communicator& group, call_order& order,
                               const options& chosen)
    : units_(units),
      group_(group),
      calls_(order),
      options_(chosen),
      blocks_(group),
      states_(units.size()),
      forwards_(ascending(units.size())),
      backwards_(descending(units.size())),
      newest_(no_unit) {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    updates_.push_back(std::make_shared<unit_update>(*this, unit));
    states_[unit].is_whole = !options_.frees_values;
    for (const auto& flat : units_[unit].flats)
      for (const auto& each : flat->parameters()) each.target->set_update(updates_.back());
  }
}

sharded_values::~sharded_values() {
  try {
    if (!options_.frees_values) begin_step();
    for (auto& state : states_)
      for (auto& each : state.calls) each.wait();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    updates_[unit]->is_whole_ = states_[unit].is_whole;
    updates_[unit]->forget();
  }
}

pass_order* sharded_values::order() {
  if (kind_ == model_pass::none) return nullptr;
  return kind_ == model_pass::backward ? &backwards_ : &forwards_;
}

void sharded_values::begin_pass(model_pass kind) {
  kind_ = kind;
  newest_ = no_unit;
  for (auto& each : states_) each.is_read_in_pass = false;
  order()->begin();
}

void sharded_values::end_pass() {
  if (auto* ended = order()) ended->end();
  if (kind_ == model_pass::evaluation || kind_ == model_pass::backward) let_go();
  kind_ = model_pass::none;
  newest_ = no_unit;
}

void sharded_values::let_go() {
  if (!options_.frees_values) return;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) let_go_of(unit);
}

void sharded_values::take_writes() {
  if (!options_.frees_values) return;
  for (const auto& unit : units_)
    for (const auto& flat : unit.flats) flat->take_writes();
}

void sharded_values::begin_step() {
  if (options_.frees_values) return let_go();
  for (std::size_t unit = 0; unit < units_.size(); ++unit) finish_gather(unit);
}

void sharded_values::end_step() {
  kind_ = model_pass::forward;
  auto first =
      options_.frees_values ? forwards_.first(1 + options_.num_gathered_ahead) : ascending(units_.size());
  for (auto unit : first) begin_gather(unit);
  kind_ = model_pass::none;
}

void sharded_values::read(std::size_t unit) {
  if (!options_.frees_values) return;
  auto& state = states_[unit];
  auto operation = values_read_together::current();
  state.read_by = operation;
  state.is_read_in_pass = true;
  if (newest_ == unit && state.is_whole) return;
  newest_ = unit;
  auto* expected = order();
  if (expected) expected->note(unit);
  for (std::size_t other = 0; other < units_.size(); ++other)
    if (states_[other].is_whole && states_[other].read_by != operation && is_done_with(other))
      let_go_of(other);
  begin_gather(unit);
  if (expected)
    for (auto next : expected->next(options_.num_gathered_ahead)) begin_gather(next);
  finish_gather(unit);
}

/// Whether the pass that is under way lets go of a unit when it reads another one.
bool sharded_values::is_done_with(std::size_t unit) const {
  if (kind_ == model_pass::none) return false;
  if (options_.frees_after_forward || kind_ == model_pass::evaluation) return true;
  return kind_ == model_pass::backward && states_[unit].is_read_in_pass;
}

void sharded_values::begin_gather(std::size_t unit) {
  auto& state = states_[unit];
  auto is_stale = !options_.frees_values;  // whole, but the parts of others have changed
  if (!state.calls.empty() || (state.is_whole && !is_stale)) return;
  for (const auto& flat : units_[unit].flats) {
    auto whole = is_stale ? flat->attached() : memory_for(flat->num_elements());
    auto own = is_stale ? flat->own_part(whole) : flat->own();
    state.calls.push_back(group_.all_gather(own, whole, flat->parts()));
    state.coming.push_back(std::move(whole));
  }
  ++num_gathers_;
  calls_.note_gather(unit);
  if (is_stale) updates_[unit]->set_pending(true);
}

/// Outside of passes all may be whole at once: such memory is not kept.
tensor sharded_values::memory_for(std::int64_t num_elements) {
  if (kind_ != model_pass::none) return blocks_.take(num_elements, memory_category::parameters);
  memory_scope counted(memory_category::parameters);
  return group_.allocate({num_elements});
}

void sharded_values::finish_gather(std::size_t unit) {
  auto& state = states_[unit];
  for (auto& each : state.calls) each.wait();
  state.calls.clear();
  auto coming = std::exchange(state.coming, {});
  updates_[unit]->set_pending(false);
  if (state.is_whole) return;
  for (std::size_t i = 0; i < coming.size(); ++i) units_[unit].flats[i]->attach(coming[i]);
  state.is_whole = true;
}

void sharded_values::let_go_of(std::size_t unit) {
  auto& state = states_[unit];
  for (auto& each : state.calls) each.wait();
  state.calls.clear();
  state.coming.clear();
  state.is_whole = false;
  for (const auto& flat : units_[unit].flats) flat->detach();
}

std::size_t sharded_values::gathered_bytes() const {
  std::size_t sum = 0;
  for (const auto& unit : units_)
    for (const auto& flat : unit.flats)
      if (flat->is_attached()) sum += flat->attached().size_bytes();
  return sum;
}

}  // namespace troupe::detail
