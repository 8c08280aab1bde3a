// scheduler_state: starts a call when all nodes have entered it, and sends its result to all of them.
#include <algorithm>
#include <utility>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_entered(const call_entered& entered) {
  if (entered.generation != options_.generation) return;
  auto rank = entered.inventory.rank;
  pause_.learn(entered.pause);
  calls_.enter(rank, entered.request, entered.description_hash);
  if (!entered.description.fields().empty()) calls_.learn(rank, entered.description);
  if (!restored_) {
    held_.set(entered.inventory);
    disk_.note_since_last(std::chrono::duration<double>(entered.inventory.since_disk_s), now());
    interrupted_step_ = std::max(interrupted_step_, entered.interrupted_step);
  }
  // The log may contain the result of the call that this node's program is still waiting in.
  num_known_[rank] = std::min<std::uint64_t>(entered.num_completed, entered.request.index);
  continue_entering();
}

void scheduler_state::continue_entering() {
  if (asks_for_results()) return;
  catch_up();
  if (phase_ == phase::gathering && calls_.is_complete(options_.world_size, num_completed())) begin_call();
}

/// Requests results of earlier calls that this node, which was restarted, lacks. False: it lacks none.
bool scheduler_state::asks_for_results() {
  if (is_asking_ || num_known_.empty()) return is_asking_;
  auto most = std::ranges::max_element(num_known_, {}, [](const auto& one) { return one.second; });
  if (most->second <= num_completed()) return false;
  is_asking_ = true;
  self_->send(options_.supervisors[static_cast<std::size_t>(most->first)],
              want_results{options_.generation, num_completed()});
  return true;
}

void scheduler_state::on_known(const known_results& known) {
  if (known.generation != options_.generation) return;
  is_asking_ = false;
  if (known.results.empty()) num_known_[known.rank] = num_completed();
  options_.completed->add(known.results);
  continue_entering();
}

/// Sends results again to nodes that missed them because of a failure: a bounded number each time a node
/// enters a call.
void scheduler_state::catch_up() {
  for (const auto& [rank, call] : calls_.entered()) {
    auto& known = num_known_[rank];
    if (known >= num_completed() || known > call.index) continue;  // it knows all, or is past them
    for (const auto& result : options_.completed->piece(known)) tell_result(rank, result);
    known = std::min<std::uint64_t>(known + call_log::max_in_piece, num_completed());
  }
}

void scheduler_state::tell_result(int rank, const call_result& result) {
  self_->send(options_.supervisors[static_cast<std::size_t>(rank)],
              call_finished{options_.generation, result});
}

void scheduler_state::begin_call() {
  if (auto disagreement = calls_.disagreement()) return refuse_call(*disagreement);
  if (!std::exchange(knows_pause_, true) && pause_.state().version > 0) tell_pause();
  carry_out_pause_requests();
  result_ = empty_result();
  result_.problem = calls_.problems();
  if (!result_.problem.empty()) return finish_call(result_);
  if (restored_ || request().kind == call_kind::barrier) return continue_call();
  place_and_restore();
}

/// Continues the call from `position_`: first replays missing steps, then does the call's own work.
void scheduler_state::continue_call() {
  phase_ = phase::running;
  const auto& wanted = request();
  if (stopping_ && (has_nothing_to_save() || position_ >= wanted.target_step)) return end_stopped();
  if (wanted.kind == call_kind::barrier) {
    // A barrier needs no restored state; a recovery during a barrier ends with it.
    if (!restored_)
      for (auto reached : {recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed})
        options_.members->report(options_.generation, reached);
    return finish_call(result_);
  }
  if (position_ < wanted.target_step) return train_on();
  if (wanted.kind == call_kind::evaluate && wanted.num_batches > 0)
    return start(call_kind::evaluate, wanted.source, 0, wanted.num_batches);
  if (wanted.kind == call_kind::predict && wanted.num_batches > 0)
    return start(call_kind::predict, wanted.source, 0, wanted.num_batches);
  if (wanted.kind == call_kind::hash || wanted.kind == call_kind::gather) return start(wanted.kind, 0, 0, 1);
  if (wanted.kind == call_kind::train) result_.metrics = metrics_;
  finish_call(result_);
}

/// Trains from `position_`: steps of earlier calls are replayed with the batch source of their call, later
/// ones with that of this call.
void scheduler_state::train_on() {
  takes_new_steps_ = false;
  if (auto before = options_.completed->trained(position_, job().first_call))
    return start(call_kind::train, before->source, position_, before->steps_done);
  takes_new_steps_ = request().kind == call_kind::train;
  start(call_kind::train, request().kind == call_kind::train ? request().source : 0, position_,
        request().target_step);
}

/// Refuses the call in all processes, each of which ends with bad_input.
void scheduler_state::refuse_call(const std::string& why) {
  options_.log->error("call refused cause=\"{}\"", why);
  result_ = empty_result();
  result_.refused = why;
  finish_call(result_);
}

call_result scheduler_state::empty_result() const {
  call_result result;
  result.index = request().index;
  result.kind = request().kind;
  result.source = request().source;
  return result;
}

void scheduler_state::finish_call(call_result result) {
  // Before anything is restored, the steps done are known from the previous call of the same job.
  bool knows = !restored_ && num_completed() > 0 && known_.job &&
               options_.completed->newest().index >= job().first_call;
  result.steps_done = knows ? options_.completed->newest().steps_done : position_;
  options_.completed->add(result);
  phase_ = phase::gathering;
  pause_.end();
  if (pause_.is_paused()) tell_pause();
  calls_.clear();
  // This node gets the result last: its process may exit then, and the scheduler with it.
  not_seen_.clear();
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (rank == options_.rank) continue;
    not_seen_.insert(rank);
    tell_result(rank, result);
  }
  if (not_seen_.empty()) return tell_own_node();
  confirm_until_ = now() + options_.confirm_timeout;
  wait_for_confirmations();
}

/// At most one timer at a time, since CAF keeps every delayed message until it is due.
void scheduler_state::wait_for_confirmations() {
  if (!std::exchange(waits_for_confirmations_, true))
    self_->delayed_send(self_, confirm_until_ - now(), confirm_timed_out{});
}

void scheduler_state::on_confirm_timed_out() {
  waits_for_confirmations_ = false;
  if (not_seen_.empty()) return;
  if (now() < confirm_until_) return wait_for_confirmations();
  tell_own_node();
}

void scheduler_state::on_seen(const result_seen& seen) {
  if (seen.generation != options_.generation || seen.index + 1 != num_completed()) return;
  if (not_seen_.erase(seen.rank) > 0 && not_seen_.empty()) tell_own_node();
}

void scheduler_state::tell_own_node() {
  not_seen_.clear();
  tell_result(options_.rank, options_.completed->newest());
}

}  // namespace troupe
