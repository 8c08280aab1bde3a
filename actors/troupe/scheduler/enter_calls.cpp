// scheduler_state: starts a call when all nodes have entered it, and sends its result to all of them.
#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {

void scheduler_state::on_copies(const copies_held& held) {
  if (held.generation != options_.generation || restored_) return;
  held_.set(held.inventory);
  disk_.note_since_last(std::chrono::duration<double>(held.inventory.since_disk_s), now());
}

void scheduler_state::on_entered(const call_entered& entered) {
  if (entered.generation != options_.generation) return;
  pause_.learn(entered.pause);
  calls_.enter(entered.rank, entered.request, entered.description_hash);
  if (!entered.description.fields().empty()) calls_.learn(entered.rank, entered.description);
  if (!restored_) interrupted_step_ = std::max(interrupted_step_, entered.interrupted_step);
  // The log may contain the result of the call that this node's program is still waiting in.
  num_known_[entered.rank] = std::min<std::uint64_t>(entered.num_completed, entered.request.index);
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
  auto rank = most->first;
  self_
      ->request(options_.supervisors[static_cast<std::size_t>(rank)], caf::infinite,
                want_results{num_completed()})
      .then([this, rank](const known_results& known) { on_known(rank, known); },
            [this, rank](const caf::error& problem) { on_no_results(rank, problem); });
  return true;
}

void scheduler_state::on_known(int rank, const known_results& known) {
  is_asking_ = false;
  if (known.results.empty()) num_known_[rank] = num_completed();
  options_.completed->add(known.results);
  continue_entering();
}

/// If the node is lost, the next generation asks again. A node that is there and does not reply costs one.
void scheduler_state::on_no_results(int rank, const caf::error& problem) {
  if (problem == actor_error::lost) return;
  self_->send(options_.supervisors[static_cast<std::size_t>(options_.rank)],
              restart_requested{options_.generation,
                                "rank " + std::to_string(rank) +
                                    " has not sent the results of earlier calls: " + describe(problem)});
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
    request_confirmation(rank, result);
  }
  if (not_seen_.empty()) tell_own_node();
}

/// A node that does not reply delays the result for the link's time limit only. If it is lost, or has heard
/// of the next generation, that generation tells the result again.
void scheduler_state::request_confirmation(int rank, const call_result& result) {
  self_
      ->request(options_.supervisors[static_cast<std::size_t>(rank)], caf::infinite,
                call_finished{options_.generation, result})
      .then([this, rank, index = result.index] { on_confirmed(rank, index); },
            [this, rank, index = result.index](const caf::error& problem) {
              if (problem != actor_error::timed_out) return;
              options_.log->warn("result not confirmed call={} reason=\"{}\"", index, describe(problem));
              on_confirmed(rank, index);
            });
}

void scheduler_state::on_confirmed(int rank, std::uint32_t index) {
  if (index + 1 != num_completed()) return;
  if (not_seen_.erase(rank) > 0 && not_seen_.empty()) tell_own_node();
}

void scheduler_state::tell_own_node() {
  not_seen_.clear();
  tell_result(options_.rank, options_.completed->newest());
}

}  // namespace troupe
