#pragma once
#include <spdlog/logger.h>

#include "troupe/node/node.hpp"
#include "troupe/world.hpp"

namespace troupe {

/// What a World and its Trainers share; not installed.
struct World::content {
  job_options options;
  std::uint32_t incarnation = 0;
  std::shared_ptr<spdlog::logger> log;
  std::unique_ptr<node> self;
};

}  // namespace troupe
