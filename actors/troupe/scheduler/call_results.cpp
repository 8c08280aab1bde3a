#include "troupe/scheduler/call_results.hpp"

#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/supervisor.hpp"

namespace troupe::actors::scheduler {

bool call_results::must_ask() {
  if (is_asking_ || num_known_.empty()) return is_asking_;
  auto most = std::ranges::max_element(num_known_, {}, [](const auto& one) { return one.second; });
  if (most->second <= num_completed()) return false;
  is_asking_ = true;
  auto rank = most->first;
  self_->request(options_.supervisor_of(rank), caf::infinite, messages::want_results{num_completed()})
      .then([this, rank](const messages::known_results& known) { on_known(rank, known); },
            [this, rank](const caf::error& problem) { on_no_results(rank, problem); });
  return true;
}

void call_results::on_known(int rank, const messages::known_results& known) {
  is_asking_ = false;
  if (known.results.empty()) num_known_[rank] = num_completed();
  options_.completed->add(known.results);
  on_learned_();
}

/// If the process is lost, the next generation asks again. A process that is there and does not reply costs
/// one.
void call_results::on_no_results(int rank, const caf::error& problem) {
  if (problem == actor::actor_error::lost) return;
  self_->send(options_.supervisor_of(options_.rank),
              messages::restart_requested{
                  options_.generation,
                  "rank " + std::to_string(rank) +
                      " has not sent the results of earlier calls: " + actor::describe(problem)});
}

void call_results::catch_up(const std::map<int, job::call_request>& entered) {
  for (const auto& [rank, call] : entered) {
    auto& known = num_known_[rank];
    if (known >= num_completed() || known > call.index) continue;  // it knows all, or is past them
    for (const auto& result : options_.completed->piece(known))
      self_->send(options_.supervisor_of(rank), messages::call_finished{options_.generation, result, true});
    known = std::min<std::uint64_t>(known + job::call_log::max_in_piece, num_completed());
  }
}

void call_results::tell(int rank, const job::call_result& result) {
  self_->send(options_.supervisor_of(rank), messages::call_finished{options_.generation, result});
}

void call_results::publish(const job::call_result& result) {
  options_.completed->add(result);
  not_confirmed_.clear();
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (rank == options_.rank) continue;
    not_confirmed_.insert(rank);
    request_confirmation(rank, result);
  }
  if (not_confirmed_.empty()) tell(options_.rank, options_.completed->newest());
}

/// A process that does not reply delays the result for the link's time limit only. If it is lost, or has
/// heard of the next generation, that generation tells the result again.
void call_results::request_confirmation(int rank, const job::call_result& result) {
  self_
      ->request(options_.supervisor_of(rank), caf::infinite,
                messages::call_finished{options_.generation, result})
      .then([this, rank, index = result.index] { on_confirmed(rank, index); },
            [this, rank, index = result.index](const caf::error& problem) {
              if (problem != actor::actor_error::timed_out) return;
              options_.log->warn("result not confirmed call={} reason=\"{}\"", index,
                                 actor::describe(problem));
              on_confirmed(rank, index);
            });
}

void call_results::on_confirmed(int rank, std::uint32_t index) {
  if (index + 1 != num_completed() || not_confirmed_.erase(rank) == 0) return;
  if (not_confirmed_.empty()) tell(options_.rank, options_.completed->newest());
}

}  // namespace troupe::actors::scheduler
