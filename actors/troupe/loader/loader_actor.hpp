#pragma once
#include <atomic>
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "troupe/fault/fault_plan.hpp"
#include "troupe/messages/loader.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::actors::loader {

/// Publishes whether a loader is executing a dataset's code. The supervisor samples it. Thread-safe.
class loader_status {
 public:
  void begin() { changes_.fetch_add(1, std::memory_order_relaxed); }
  void end() { changes_.fetch_add(1, std::memory_order_relaxed); }
  /// Odd while the loader is in the dataset. Equal in two samples: neither begin() nor end() was called.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> changes_ = 0;
};

/// Reads the batches of this process's first and last stages, ahead of their use.
///
/// States: none; samples are a pure function of the step, so nothing is rolled back after a failure.
///
///   message    -> reply                                     errors
///   add_source ->
///   want_batch -> batch_ready (a message to the sender)     a source that throws ends the actor
///
/// Monitors no actor. Detached: reading and decompressing samples blocks and computes.
class loader_state {
 public:
  static constexpr const char* actor_name = "loader";
  loader_state(caf::event_based_actor* self, std::vector<std::shared_ptr<batch_source>> sources,
               std::shared_ptr<loader_status> status = std::make_shared<loader_status>(),
               const fault::fault_plan* faults = nullptr);
  caf::behavior make_behavior();

 private:
  void on_want_batch(const messages::want_batch& wanted);
  batch read(const messages::want_batch& wanted);

  struct made {
    std::uint32_t call;
    std::uint32_t source;
    std::uint64_t step;
    batch samples;
  };

  // constant
  caf::event_based_actor* self_;
  std::vector<std::shared_ptr<batch_source>> sources_;
  std::shared_ptr<loader_status> status_;
  const fault::fault_plan* faults_;
  // The newest batches: several devices of this process ask for the same ones. A source may have another
  // batch of that step in another call.
  std::deque<made> recent_;
};

}  // namespace troupe::actors::loader
