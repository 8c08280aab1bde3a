#include "troupe/gatherer/gatherer_actor.hpp"

#include <utility>

#include "troupe/link/wire_table.hpp"

namespace troupe {

gatherer_state::gatherer_state(caf::event_based_actor* self, gatherer_options options)
    : self_(self),
      options_(std::move(options)),
      kept_(options_.rank, options_.world_size, options_.kept_bytes) {}

caf::behavior gatherer_state::make_behavior() {
  return {[this](const gather_tensors& order) { on_gather(order); },
          [this](const tensor_gathered& arrived) { on_tensor(arrived); },
          [this](const want_kept& wanted) { on_want(wanted); },
          [this](const kept_given& given) { on_given(given); }};
}

/// A node may announce a call twice in a generation, and tensors may have come in between. It announces one
/// that is over too, before it hears that.
void gatherer_state::on_gather(const gather_tensors& order) {
  bool is_known =
      current_ && current_->order.generation == order.generation && current_->order.call == order.call;
  if (!is_known) current_ = collection{order, {}, {}, {}, false};
  if (!order.kept_by_others || (is_known && current_->order.kept_by_others)) return;
  current_->order = order;
  ask_others();
}

void gatherer_state::ask_others() {
  const auto& order = current_->order;
  auto body = encode_message({actor_role::gatherer, 0},
                             caf::make_message(want_kept{order.generation, options_.rank, order.call}));
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (rank != options_.rank) options_.out->send_control(rank, order.generation, *body);
  end_if_gone();
}

void gatherer_state::on_tensor(const tensor_gathered& arrived) {
  if (!current_ || current_->is_over || arrived.generation != current_->order.generation ||
      arrived.call != current_->order.call)
    return;
  // Two neighbours may give the same one.
  current_->arrived.emplace(arrived.place, arrived.value);
  if (current_->arrived.size() == current_->order.num_tensors) finish();
}

void gatherer_state::finish() {
  kept_.add(current_->order.call, current_->arrived);
  gathered_tensors all{current_->order.generation, current_->order.call, {}};
  for (auto& [place, value] : current_->arrived) all.tensors.push_back(std::move(value));
  current_->arrived.clear();
  current_->is_over = true;
  options_.client->put(std::move(all));
}

void gatherer_state::on_want(const want_kept& wanted) {
  kept_given answer{wanted.generation, options_.rank, wanted.call, {}};
  for (const auto& [place, value] : kept_.find(wanted.call)) {
    options_.out->send_tensor(wanted.rank,
                              {wanted.generation, 0, wanted.call, 0, place, tensor_role::gathered}, value);
    answer.places.push_back(place);
  }
  auto body = encode_message({actor_role::gatherer, 0}, caf::make_message(answer));
  options_.out->send_control(wanted.rank, wanted.generation, *body);
}

void gatherer_state::on_given(const kept_given& given) {
  if (!current_ || given.generation != current_->order.generation || given.call != current_->order.call)
    return;
  current_->answered.insert(given.rank);
  current_->announced.insert(given.places.begin(), given.places.end());
  end_if_gone();
}

void gatherer_state::end_if_gone() {
  if (current_->is_over || current_->answered.size() + 1 < static_cast<std::size_t>(options_.world_size) ||
      current_->announced.size() == current_->order.num_tensors)
    return;
  current_->is_over = true;
  options_.client->put(gathered_gone{current_->order.call});
}

}  // namespace troupe
