#pragma once
#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "troupe/actor/actor_name.hpp"
#include "troupe/cluster/membership.hpp"
#include "troupe/link/process_links.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/supervisor/job_children.hpp"
#include "troupe/supervisor/supervisor_options.hpp"

namespace troupe::actors::supervisor {

/// Where the actors of one process reach those of the others in one generation, and where its own are
/// reached: links and the scheduler's handle, and names for the inbound gate and the stage directory.
class process_connections {
 public:
  /// `self` is the supervisor; it and `options` outlive this object.
  process_connections(caf::event_based_actor* self, const supervisor_options& options)
      : self_(self), options_(options) {}
  process_connections(const process_connections&) = delete;
  process_connections& operator=(const process_connections&) = delete;
  ~process_connections() { end({}, "its process has left the job"); }

  /// Ends the links of the generation before, and makes those of this one, which connect when they are
  /// needed. Without a scheduler until `use_scheduler`.
  void begin(const cluster::membership_view& formed);
  /// The scheduler is here (a handle) or on another rank (its proxy).
  void use_scheduler(const caf::actor& here);
  void use_scheduler_of(int rank);
  /// Delivers what arrived for this generation, and from now on what arrives.
  void open() { options_.gate->open(generation_, links_); }
  /// Requests to remote actors fail, and those that monitor them get a down message.
  void end(const std::vector<cluster::member_loss>& losses, const std::string& otherwise);
  /// The scheduler that is here ends, and no tensor reaches it any more.
  void end_scheduler();

  void bind(actor::actor_role role, int number, const caf::actor& actor);
  /// Gives the children their names, and the directory their handles.
  void publish(job_children& children);

  /// Whom an inspector asks in this generation.
  messages::inspected_generation inspected() const;

  const mesh::view& present() const { return present_; }  ///< all of the agent's views have every rank
  /// A proxy unless this process has it.
  const caf::actor& scheduler() const { return scheduler_; }
  /// Invalid unless this process has the scheduler.
  const caf::actor& local_scheduler() const { return local_scheduler_; }
  /// A proxy of another process's actor.
  caf::actor remote(int rank, actor::actor_role role, int number) const;

 private:
  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;

  std::uint64_t generation_ = 0;
  mesh::view present_;
  std::shared_ptr<link::process_links> links_;  ///< null before the first view
  caf::actor scheduler_, local_scheduler_;
};

}  // namespace troupe::actors::supervisor
