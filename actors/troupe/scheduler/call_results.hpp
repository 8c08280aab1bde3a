#pragma once
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// The results of calls at the processes of one generation: asks processes for results that this one lacks,
/// since it was restarted, sends results to processes that lack them, and a new one to all.
class call_results {
 public:
  /// All outlive this object. `on_learned`: a process has replied with results.
  call_results(caf::event_based_actor* self, const scheduler_options& options,
               std::function<void()> on_learned)
      : self_(self), options_(options), on_learned_(std::move(on_learned)) {}

  /// This process knows the results of its first calls.
  void set_known(int rank, std::uint64_t num_results) { num_known_[rank] = num_results; }
  /// Requests results that a process knows and this one lacks. False: it lacks none.
  bool must_ask();
  /// Sends results again to processes that missed them because of a failure: a bounded number each time a
  /// process enters a call.
  void catch_up(const std::map<int, job::call_request>& entered);
  /// Adds the result of the newest call and sends it to all processes. When all others have confirmed it, the
  /// own process gets it, last of all: it may exit then, and the scheduler with it.
  void publish(const job::call_result& result);

 private:
  void on_known(int rank, const messages::known_results& known);
  void on_no_results(int rank, const caf::error& problem);
  void tell(int rank, const job::call_result& result);
  void request_confirmation(int rank, const job::call_result& result);
  void on_confirmed(int rank, std::uint32_t index);
  std::size_t num_completed() const { return options_.completed->size(); }

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  std::function<void()> on_learned_;

  bool is_asking_ = false;                  ///< for results of earlier calls
  std::map<int, std::uint64_t> num_known_;  ///< results that each rank knows or was told
  std::set<int> not_confirmed_;             ///< ranks that have not confirmed the newest result
};

}  // namespace troupe::actors::scheduler
