#include "troupe/gatherer/gatherer_actor.hpp"

#include <utility>

#include "troupe/link/wire_table.hpp"

namespace troupe {

gatherer_state::gatherer_state(caf::event_based_actor* self, gatherer_options options)
    : self_(self),
      options_(std::move(options)),
      cache_(options_.rank, options_.world_size, options_.cache_limit_bytes) {}

caf::behavior gatherer_state::make_behavior() {
  return {[this](const gather_tensors& order) { on_gather(order); },
          [this](const tensor_gathered& arrived) { on_tensor(arrived); },
          [this](const get_cached& wanted) { on_get_cached(wanted); },
          [this](const cached_sent& reply) { on_cached_sent(reply); }};
}

/// The supervisor may announce a call twice in a generation, with tensors arriving in between: first as a
/// running call, then, when it learns that the call is over, with from_caches. What has arrived is kept.
void gatherer_state::on_gather(const gather_tensors& order) {
  bool is_known =
      current_ && current_->order.generation == order.generation && current_->order.call == order.call;
  if (!is_known) current_ = collection{order, {}, {}, {}, false};
  if (!order.from_caches || (is_known && current_->order.from_caches)) return;
  current_->order = order;
  request_cached();
}

void gatherer_state::request_cached() {
  const auto& order = current_->order;
  auto body = encode_message({actor_role::gatherer, 0},
                             caf::make_message(get_cached{order.generation, options_.rank, order.call}));
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (rank != options_.rank) options_.out->send_control(rank, order.generation, *body);
  finish_if_unavailable();
}

void gatherer_state::on_tensor(const tensor_gathered& arrived) {
  if (!current_ || current_->is_done || arrived.generation != current_->order.generation ||
      arrived.call != current_->order.call)
    return;
  // Two caches may send the same tensor.
  current_->arrived.emplace(arrived.index, arrived.value);
  if (current_->arrived.size() == current_->order.num_tensors) finish();
}

void gatherer_state::finish() {
  cache_.add(current_->order.call, current_->arrived);
  gathered_tensors all{current_->order.generation, current_->order.call, {}};
  for (auto& [index, value] : current_->arrived) all.tensors.push_back(std::move(value));
  current_->arrived.clear();
  current_->is_done = true;
  options_.client->put(std::move(all));
}

void gatherer_state::on_get_cached(const get_cached& wanted) {
  cached_sent answer{wanted.generation, options_.rank, wanted.call, {}};
  for (const auto& [index, value] : cache_.find(wanted.call)) {
    options_.out->send_tensor(wanted.rank,
                              {wanted.generation, 0, wanted.call, 0, index, tensor_role::gathered}, value);
    answer.indices.push_back(index);
  }
  auto body = encode_message({actor_role::gatherer, 0}, caf::make_message(answer));
  options_.out->send_control(wanted.rank, wanted.generation, *body);
}

void gatherer_state::on_cached_sent(const cached_sent& reply) {
  if (!current_ || reply.generation != current_->order.generation || reply.call != current_->order.call)
    return;
  current_->answered.insert(reply.rank);
  current_->announced.insert(reply.indices.begin(), reply.indices.end());
  finish_if_unavailable();
}

void gatherer_state::finish_if_unavailable() {
  if (current_->is_done || current_->answered.size() + 1 < static_cast<std::size_t>(options_.world_size) ||
      current_->announced.size() == current_->order.num_tensors)
    return;
  current_->is_done = true;
  options_.client->put(gathered_unavailable{current_->order.call});
}

}  // namespace troupe
