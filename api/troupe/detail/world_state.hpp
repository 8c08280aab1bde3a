#pragma once
#include <spdlog/logger.h>

#include "troupe/collective/backends/backend_registry.hpp"
#include "troupe/collective/group/group_builder.hpp"
#include "troupe/config/environment/events_environment.hpp"
#include "troupe/detail/running_call.hpp"
#include "troupe/execution/replicas/group_maker.hpp"
#include "troupe/files/folder_lock.hpp"
#include "troupe/mesh/device_places.hpp"
#include "troupe/process/process.hpp"
#include "troupe/world.hpp"

namespace troupe {

/// The state shared by a World and its Trainers. Not installed.
struct World::state {
  job_options options;
  std::uint32_t incarnation = 0;
  mesh::process_places places;
  std::shared_ptr<spdlog::logger> log;
  config::profile_form shown_profile = config::profile_form::none;
  std::shared_ptr<collective::communication_profile> profile;  ///< null: not requested
  std::shared_ptr<collective::open_groups> open =
      std::make_shared<collective::open_groups>();  ///< for the inspector
  std::weak_ptr<void> trainer;                      ///< a Trainer exists while this has not expired
  std::uint32_t num_trainers = 0;                   ///< Trainers created so far
  detail::running_call running;
  /// Of the last Trainer's snapshot folder, until the process has written the last snapshot.
  std::optional<files::folder_lock> folder;

  // Members are destroyed in reverse order. A backend's library may wait for the other processes when it
  // shuts down, and so is destroyed last, when all have left the job.
  std::unique_ptr<collective::backend_registry> backends;
  std::shared_ptr<actors::process::process> self;
  std::shared_ptr<collective::group_builder> groups;
  std::shared_ptr<communicator> default_group;

  /// Makes the groups of a job's replicas, while this lives; empty: the backend carries no sums of jobs.
  execution::group_maker job_groups() const;

  state() = default;
  ~state();
  void show_profile() const;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

}  // namespace troupe
