#pragma once
#include <caf/actor.hpp>
#include <cereal/types/string.hpp>
#include <cstdint>
#include <string>

#include "troupe/actor/child_id.hpp"
#include "troupe/actor/message_storage.hpp"
#include "troupe/job/pause.hpp"

namespace troupe::actors::messages {

// Inspector -> supervisor, requests: a command of someone who watches the job (docs/inspect.md). The reply is
// command_carried_out, or an error that says why nothing was done.

/// End an actor of this process. `is_failure`: as if it had failed, so that it counts as a restart; else it
/// is started again at once and does not count.
struct end_actor {
  std::uint64_t generation = 0;
  std::string id;                 ///< of the inspector's command
  std::uint32_t incarnation = 0;  ///< of the process that is meant
  actor::child_id child;
  std::uint8_t is_failure = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, id, incarnation, child, is_failure);
  }
};

/// End this process, which the launcher then replaces. `is_failure`: by SIGKILL; else the program's next or
/// running call throws job_failed, and the process gets SIGKILL if it has not ended 10 s later.
struct end_process {
  std::uint64_t generation = 0;
  std::string id;  ///< of the inspector's command
  std::uint32_t incarnation = 0;
  std::uint8_t is_failure = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, id, incarnation, is_failure);
  }
};

/// Log from this level on.
struct set_log_level {
  std::uint64_t generation = 0;
  std::string level;  ///< a name that spdlog knows
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, level);
  }
};

struct command_carried_out {
  std::uint32_t starts = 0;  ///< end_actor: how often the actor had been started
  template <class Archive>
  void serialize(Archive& archive) {
    archive(starts);
  }
};

/// Inspector -> supervisor of its process, a request: as request_pause. The reply comes when the scheduler
/// has carried it out, in this generation or a later one.
struct carry_out_pause {
  job::pause_request request;
};
struct pause_carried_out {
  std::uint64_t version = 0;  ///< of the pause_state that the request has made
};

/// Supervisor -> itself, delayed: its process is to end now.
struct end_process_now {
  std::uint8_t is_failure = 0;
  std::string cause;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::end_actor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::end_process)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::set_log_level)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::command_carried_out)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::carry_out_pause)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::pause_carried_out)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::end_process_now)
