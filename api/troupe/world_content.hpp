#pragma once
#include <spdlog/logger.h>

#include "troupe/collective/group/backend_registry.hpp"
#include "troupe/collective/group/group_builder.hpp"
#include "troupe/config/profile_environment.hpp"
#include "troupe/node/node.hpp"
#include "troupe/world.hpp"

namespace troupe {

/// What a World and its Trainers share; not installed.
struct World::content {
  job_options options;
  std::uint32_t incarnation = 0;
  std::shared_ptr<spdlog::logger> log;
  profile_form shown_profile = profile_form::none;
  std::shared_ptr<communication_profile> profile;  ///< null: none is asked for
  std::weak_ptr<void> trainer;                     ///< there is one as long as this has not expired
  std::uint32_t num_trainers = 0;                  ///< so far

  // From the last to be needed to the first: destroyed in reverse order. A backend's library may wait for the
  // other processes at its end, and so goes when all have left the job.
  std::unique_ptr<backend_registry> backends;
  std::shared_ptr<node> self;
  std::unique_ptr<group_builder> groups;
  std::shared_ptr<communicator> default_group;

  content() = default;
  ~content();
  void show_profile() const;
  content(const content&) = delete;
  content& operator=(const content&) = delete;
};

}  // namespace troupe
