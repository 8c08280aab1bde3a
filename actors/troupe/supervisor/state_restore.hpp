#pragma once
#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "troupe/layout/part_id.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/supervisor/generation_runner.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::supervisor {

/// Holds states that peers sent for this process's parts until restore_command asks for them. A state may
/// arrive before the restore_command, and even before the view of its generation. Only states of the newest
/// generation are held.
class arrived_states {
 public:
  void add(std::uint64_t generation, const layout::part_id& part, const tensor& packed);
  /// Undefined if it has not arrived.
  tensor find(std::uint64_t generation, const layout::part_id& part) const;
  void clear() { packed_.clear(); }

 private:
  std::uint64_t generation_ = 0;
  std::map<layout::part_id, tensor> packed_;
};

/// Carries out the scheduler's restore_command on one process: hosts the devices that it gets, hands each
/// stage its state from memory, a peer or the disk, sends peers what they need, and starts the devices.
class state_restore {
 public:
  /// All outlive this object.
  state_restore(caf::event_based_actor* self, const supervisor_options& options,
                generation_runner& generations, process_connections& connections, job_children& children);

  void begin(const messages::restore_command& command);
  /// A fence has been raised: what is under way is void.
  void cancel();
  void forget_job();
  void on_state(const messages::state_arrived& arrived);
  /// Where devices run, they tell their stages, and these the peer copy store.
  void on_committed(const messages::copies_committed& committed);

  // children of io that were spawned again
  /// Replicas were lost in this generation, after this process has told what it holds.
  void note_replicas_lost() { replicas_lost_in_ = generation_.number; }
  void introduce_store();
  void introduce_writer();
  /// Repeats the requests that the previous snapshot writer has not answered.
  void read_again();
  /// The step restored in this generation; none: not yet.
  std::optional<std::uint64_t> step() const;

 private:
  void host_devices();
  void tell_devices();
  void restore_one(const recovery::restore_source& source);
  void restore_from_this_process(const recovery::restore_source& source);
  template <class Take>
  void request_copy(const recovery::restore_source& source, Take take);
  layout::cell cell_of(const layout::part_id& part) const;
  void read_from_disk_for(const layout::part_id& part);
  void read_from_disk_for(const layout::part_id& part, const messages::contents_listed& listed);
  void send_copy(const recovery::restore_source& source);
  void on_replica_missing(std::uint64_t generation, const caf::error& problem);
  messages::restore_stage command_for(const layout::cell& stage, std::uint64_t step,
                                      bool from_scratch = false) const;
  void hand_to_stage(const layout::cell& stage, messages::restore_stage command);
  void on_stage_ready(const messages::stage_ready& ready);
  void begin_devices();
  std::shared_ptr<const messages::device_job> make_device_job() const;
  std::shared_ptr<execution::replica_groups> make_groups() const;
  std::chrono::duration<double> since_disk() const { return self_->clock().now() - snapshot_at_; }
  world_rank self_rank() const { return options_.rank; }

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  const process_generation& generation_;
  generation_runner& generations_;
  process_connections& connections_;
  job_children& children_;

  std::optional<messages::restore_command>
      command_;                        ///< the command of this generation; none: it has not come
  std::set<layout::part_id> reading_;  ///< parts whose state the snapshot writer has not sent yet
  std::map<layout::cell, messages::attached_stage> ready_;
  std::map<std::int32_t, program::step_metrics> restored_metrics_;  ///< by replica, see process_restored
  /// When the newest snapshot was written, as known when the state was restored.
  std::chrono::steady_clock::time_point snapshot_at_;
  arrived_states arrived_;
  /// The newest generation in which the peer copy store failed, and in which a missing replica was found.
  std::uint64_t replicas_lost_in_ = 0, replica_missing_in_ = 0;
};

}  // namespace troupe::actors::supervisor
