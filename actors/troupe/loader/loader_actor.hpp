#pragma once
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "troupe/loader/messages.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe {

/// Makes the batches of this process's first and last stages, ahead of their use.
///
/// States: none; samples are a pure function of the step, so nothing is rolled back after a failure.
///
///   message    -> reply                                     errors
///   add_source ->
///   want_batch -> batch_ready (a message to the sender)     a source that throws ends the actor
///
/// Monitors nobody. Detached: decompressing and gathering samples takes time that no other actor should wait
/// for.
class loader_state {
 public:
  static constexpr const char* actor_name = "loader";
  loader_state(caf::event_based_actor* self, std::vector<std::shared_ptr<batch_source>> sources);
  caf::behavior make_behavior();

 private:
  void on_want_batch(const want_batch& wanted);

  struct made {
    std::uint32_t source;
    std::uint64_t step;
    batch samples;
  };

  // constant
  caf::event_based_actor* self_;
  std::vector<std::shared_ptr<batch_source>> sources_;
  // the newest batches: several devices of this process ask for the same ones
  std::deque<made> recent_;
};

}  // namespace troupe
