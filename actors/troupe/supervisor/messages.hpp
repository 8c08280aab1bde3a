#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <memory>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/job/call.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// From the membership's thread.
struct fence_raised {
  std::uint64_t generation = 0;
  std::vector<member_loss> losses;
};
struct view_formed {
  membership_view view;
};
struct recovery_done {
  recovery_report report;
};
struct job_ended {
  std::string cause;
};
struct stop_wanted {
  int signal = 0;
};
struct job_was_stopped {
  int signal = 0;
  std::string what;
};

// From the transport's thread.
struct peer_broken {
  int rank = 0;
  std::string cause;
};
/// A tensor from `rank` did not get into memory.
struct tensor_lost {
  int rank = 0;
  std::uint64_t generation = 0;
  std::string cause;
};
/// A stage's state for this node, sent by the node that kept a copy.
struct state_arrived {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
  tensor packed;
};

// From the user's thread.
struct define_job {
  std::shared_ptr<const job_definition> job;
};
struct enter_call {
  call_request request;
};

/// The program has the tensors that a call gave it, see gathered_taken; of this generation.
struct program_took {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::string problem;
};
/// The program makes a call again that is over, and needs the tensors that it gave.
struct fetch_kept {
  call_request request;
};
/// The program wants no further steps of the training call `call`.
struct cancel_call {
  std::uint32_t call = 0;
};

/// Supervisor -> itself, later: an actor failed, the job must roll back.
struct generation_wanted {
  std::uint64_t current = 0;
  std::string cause;
};

/// Scheduler -> supervisor of its node: what was lost on the way comes again in a new generation. Counts as a
/// restart.
struct restart_wanted {
  std::uint64_t generation = 0;
  std::string cause;
};

/// Supervisor -> itself, now and then: do the devices get on?
struct look_at_progress {};

/// Scheduler -> supervisor: give your stages this state, then answer with node_restored.
struct restore_order {
  std::uint64_t generation = 0;
  restore_plan plan;
  double since_disk_s = 0;  ///< what the nodes know together; see node_inventory
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, plan, since_disk_s);
  }
};

/// Scheduler -> supervisor: a scheduler that has just begun knows less than this node. Answered with
/// known_results.
struct want_results {
  std::uint64_t generation = 0;
  std::uint64_t first = 0;  ///< call
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, first);
  }
};

/// Scheduler -> supervisor: there will be no snapshot of this step on disk, what was written of it may go.
struct snapshot_failed {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step);
  }
};

/// Scheduler -> supervisor: the stages' copies of this step are due on disk.
struct write_copies {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step);
  }
};

/// Scheduler -> supervisor: the call is over everywhere.
struct call_finished {
  std::uint64_t generation = 0;
  call_result result;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, result);
  }
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::fence_raised)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::view_formed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::recovery_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::job_over)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::job_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stop_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::job_was_stopped)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::peer_broken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::tensor_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::state_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::define_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::enter_call)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::program_took)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::fetch_kept)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cancel_call)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::generation_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::restart_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::look_at_progress)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::restore_order)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::snapshot_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::write_copies)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::want_results)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::call_finished)
