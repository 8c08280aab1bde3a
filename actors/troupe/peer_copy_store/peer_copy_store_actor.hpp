#pragma once
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <map>
#include <memory>
#include <utility>

#include "troupe/fault/fault_plan.hpp"
#include "troupe/job/latest_copies.hpp"
#include "troupe/messages/peer_copy_store.hpp"
#include "troupe/messages/stage.hpp"

namespace troupe::actors::peer_copy_store {

struct peer_copy_store_options {
  int rank = 0;
  const fault::fault_plan* faults = nullptr;        ///< may be null; outlives the actor
  std::shared_ptr<job::latest_copies> latest = {};  ///< gets each replica; may be null
};

/// Keeps copies of peers' parts in memory. It never waits for the disk, so a stalled disk does not delay a
/// recovery.
///
/// States: none besides the current generation.
///
///   message           -> reply                       errors
///   store_generation  -> part_held to the scheduler, for each replica that arrived early
///   replica_arrived   -> part_held to the scheduler
///   get_replica       -> stage_copy                  no such replica
///   list_parts        -> held_parts
///   drop_before       ->
///
/// Monitors no actor. Scheduled: it moves handles only, no elements.
class peer_copy_store_state {
 public:
  static constexpr const char* actor_name = "peer copy store";
  peer_copy_store_state(caf::event_based_actor* self, peer_copy_store_options options);
  caf::behavior make_behavior();

 private:
  void on_generation(const messages::store_generation& begun);
  void on_replica(const messages::replica_arrived& arrived);
  caf::result<messages::stage_copy> on_get(const messages::get_replica& wanted) const;
  messages::held_parts on_list() const;
  void on_drop(const messages::drop_before& command);

  using step_and_part = std::pair<std::uint64_t, layout::part_id>;
  struct replica {
    std::uint64_t generation = 0;
    tensor packed;
  };

  // constant
  caf::event_based_actor* self_;
  peer_copy_store_options options_;
  // state
  std::map<step_and_part, replica> replicas_;
  std::uint64_t committed_step_ = 0;  ///< the newest reported to it
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
};

}  // namespace troupe::actors::peer_copy_store
