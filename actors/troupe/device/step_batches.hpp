#pragma once
#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "troupe/execution/plan_run.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/loader.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe::actors::devices {

/// The samples of a device's steps: asks the loader for some steps ahead, and holds what comes until its step
/// is done.
class step_batches {
 public:
  /// `self` is the device's actor and outlives it. `account` is charged for the samples.
  step_batches(caf::event_based_actor* self, memory_account account)
      : self_(self), account_(std::move(account)) {}

  /// Asks command.loader from now on, if it is valid. Of no call yet.
  void begin_generation(const messages::begin_generation& command);
  /// Forgets the samples and the loader until the next generation.
  void end_generation();
  /// Of the steps of `call` from `first_step` on, which take those batches of its source.
  void begin_call(const job::call_request& call, std::uint64_t first_step,
                  const execution::batch_assignment& assignment);

  /// Asks for the steps before `end` that were not asked for, from `first` on.
  void want(std::uint64_t first, std::uint64_t end);
  /// Asks another loader for the steps from `first` on that have not come. A batch of the previous one that
  /// arrives late equals that of the new one.
  void replace_loader(const caf::actor& loader, std::uint64_t first);
  /// Holds a batch, unless it is of a step before `first`, of another activity of the call, or requested by
  /// an interrupted generation.
  void take(const messages::batch_ready& ready, std::uint64_t first);
  /// Null: they have not come.
  const batch* batch_of(std::uint64_t step) const;
  void forget(std::uint64_t step) { held_.erase(assignment_.batch_of(step)); }

 private:
  void ask_for(std::uint64_t step);

  caf::event_based_actor* self_;
  memory_account account_;
  caf::actor loader_;  ///< invalid: the device needs none, or has stopped
  bool takes_inputs_ = false, takes_targets_ = false;
  /// Index and source of the call.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> call_;
  execution::batch_assignment assignment_;
  std::uint64_t next_wanted_ = 0;
  std::map<std::uint64_t, batch> held_;  ///< by number of the batch
};

}  // namespace troupe::actors::devices
