#include "troupe/gatherer/gatherer_actor.hpp"

#include <utility>

#include "troupe/actor/actor_error.hpp"

namespace troupe::actors::gatherer {

gatherer_state::gatherer_state(caf::event_based_actor* self, gatherer_options options)
    : self_(self),
      options_(std::move(options)),
      cache_(options_.rank, options_.world_size, options_.cache_limit_bytes) {}

caf::behavior gatherer_state::make_behavior() {
  return {[this](const messages::gather_tensors& command) { on_gather(command); },
          [this](const messages::tensor_gathered& arrived) { on_tensor(arrived); },
          [this](const messages::get_cached& wanted) { return on_get_cached(wanted); }};
}

/// The supervisor may announce a call twice in a generation, with tensors arriving in between: first as a
/// running call, then, when it learns that the call is over, with from_caches. What has arrived is kept.
void gatherer_state::on_gather(const messages::gather_tensors& command) {
  bool is_known = current_ && current_->command.generation == command.generation &&
                  current_->command.call == command.call;
  if (!is_known) current_ = collection{command, {}, 0, {}, false};
  if (!command.from_caches || (is_known && current_->command.from_caches)) return;
  current_->command = command;
  request_cached();
}

/// Without a time limit of its own: links answer every request.
void gatherer_state::request_cached() {
  const auto& command = current_->command;
  auto is_current = [this, generation = command.generation, call = command.call] {
    return current_ && current_->command.generation == generation && current_->command.call == call;
  };
  for (const auto& cache : command.caches)
    self_
        ->request(cache, caf::infinite, messages::get_cached{command.generation, options_.rank, command.call})
        .then(
            [this, is_current](const messages::cached_sent& reply) {
              if (is_current()) on_cached_sent(reply);
            },
            [this, is_current](const caf::error& problem) {
              if (is_current()) on_no_reply(problem);
            });
  finish_if_unavailable();
}

void gatherer_state::on_tensor(const messages::tensor_gathered& arrived) {
  if (!current_ || current_->is_done || arrived.generation != current_->command.generation ||
      arrived.call != current_->command.call)
    return;
  // Two caches may send the same tensor.
  current_->arrived.emplace(arrived.index, arrived.value);
  if (current_->arrived.size() == current_->command.num_tensors) finish();
}

void gatherer_state::finish() {
  cache_.add(current_->command.call, current_->arrived);
  job::gathered_tensors all{current_->command.generation, current_->command.call, {}};
  for (auto& [index, value] : current_->arrived) all.tensors.push_back(std::move(value));
  current_->arrived.clear();
  current_->is_done = true;
  options_.client->put(std::move(all));
}

messages::cached_sent gatherer_state::on_get_cached(const messages::get_cached& wanted) {
  messages::cached_sent answer;
  for (const auto& [index, value] : cache_.find(wanted.call)) {
    options_.out->send_tensor(
        wanted.rank, {wanted.generation, 0, wanted.call, 0, index, transport::tensor_role::gathered}, value);
    answer.indices.push_back(index);
  }
  return answer;
}

void gatherer_state::on_cached_sent(const messages::cached_sent& reply) {
  ++current_->num_replies;
  current_->announced.insert(reply.indices.begin(), reply.indices.end());
  finish_if_unavailable();
}

/// A lost process: the next generation asks the others again. Else the cache of that process cannot be used.
void gatherer_state::on_no_reply(const caf::error& problem) {
  if (problem == actor::actor_error::lost) return;
  options_.log->warn("tensors of call {} are not in one of the caches: {}", current_->command.call,
                     actor::describe(problem));
  on_cached_sent({});
}

void gatherer_state::finish_if_unavailable() {
  if (current_->is_done || current_->num_replies < current_->command.caches.size() ||
      current_->announced.size() == current_->command.num_tensors)
    return;
  current_->is_done = true;
  options_.client->put(job::gathered_unavailable{current_->command.call});
}

}  // namespace troupe::actors::gatherer
