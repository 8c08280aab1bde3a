#pragma once
#include <cereal/types/string.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "troupe/cluster/membership.hpp"

/// The messages between members and agent, encoded by wire/codec.hpp inside authenticated frames.
namespace troupe::cluster::agent_wire {

/// Serialisable forms of the structs of membership.hpp, which stays free of Cereal.
struct member_fields : member {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, incarnation, pid, host, numeric_class, address.control, address.data);
  }
};
struct loss_fields : member_loss {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, cause);
  }
};

// From a member:

/// The first message: identifies the sender.
struct hello {
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::uint32_t incarnation = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, world_size, incarnation);
  }
};
struct heartbeat {
  template <class Archive>
  void serialize(Archive&) {}
};
struct join_job {
  member_fields self;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(self);
  }
};
struct computing_on {
  std::uint64_t generation = 0;  ///< for which the sender is to stop
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation);
  }
};
struct quiesced_for {
  std::uint64_t generation = 0;
  transport::process_address address;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, address.control, address.data);
  }
};
struct generation_request {
  std::uint64_t current = 0;
  std::string cause;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(current, cause);
  }
};
struct suspicion {
  std::int32_t rank = 0;
  std::uint32_t incarnation = 0;  ///< as the sender knows it from its last view
  std::string cause;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, incarnation, cause);
  }
};
struct progress_report {
  job_progress progress;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(progress.generation, progress.step, progress.total_steps, progress.loss);
  }
};
struct phase_report {
  std::uint64_t generation = 0;
  recovery_phase phase = recovery_phase::restored;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, phase);
  }
};
struct job_failure {
  std::string cause;
  failure_kind kind = failure_kind::error;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cause, kind);
  }
};
struct leave_job {
  template <class Archive>
  void serialize(Archive&) {}
};

/// Stores a value. Reply: store_reply with the same `request`, a number of the sender's.
struct put_value {
  std::uint64_t request = 0;
  std::string key;
  std::vector<std::byte> value;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(request, key, value);
  }
};
/// Reads a value. Reply: store_reply, once the key has been put.
struct get_value {
  std::uint64_t request = 0;
  std::string key;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(request, key);
  }
};
/// Cancels get_value: its timeout has passed.
struct forget_request {
  std::uint64_t request = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(request);
  }
};
struct stop_request {
  std::int32_t signal = 0;
  stop_scope scope = stop_scope::member;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(signal, scope);
  }
};
/// The answer to stop_requested.
struct stop_done {
  std::string summary;  ///< what was saved, in words
  template <class Archive>
  void serialize(Archive& archive) {
    archive(summary);
  }
};
/// The sender is about to end with an error.
struct member_failure {
  std::string message;  ///< empty: not known yet
  failure_kind kind = failure_kind::error;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(message, kind);
  }
};
using client_message =
    std::variant<hello, heartbeat, join_job, quiesced_for, generation_request, suspicion, progress_report,
                 phase_report, job_failure, leave_job, put_value, get_value, forget_request, stop_request,
                 stop_done, member_failure, computing_on>;

// From the agent:

/// The reply to hello. An empty refusal: accepted.
struct answer {
  std::string refusal;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(refusal);
  }
};
struct fence {
  std::uint64_t generation = 0;
  std::vector<loss_fields> losses;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, losses);
  }
};
struct view {
  std::uint64_t generation = 0;
  std::vector<member_fields> members;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, members);
  }
};
struct recovered {
  std::uint64_t generation = 0;
  loss_fields loss;
  recovery_report report;  ///< its generation and loss travel in the fields above
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, loss, report.detect_s, report.fence_s, report.quiesce_s, report.respawn_s,
            report.restore_s, report.rebuild_s, report.replay_s, report.total_s);
  }
};
struct job_end {
  std::string cause;
  failure_kind kind = failure_kind::error;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cause, kind);
  }
};
struct job_done {
  template <class Archive>
  void serialize(Archive&) {}
};
struct store_reply {
  std::uint64_t request = 0;
  std::string refusal;  ///< why the request failed; empty: it succeeded
  std::vector<std::byte> value;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(request, refusal, value);
  }
};
struct stop_requested {
  std::int32_t signal = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(signal);
  }
};
struct job_stopped {
  std::int32_t signal = 0;
  std::string summary;  ///< what was saved, in words
  template <class Archive>
  void serialize(Archive& archive) {
    archive(signal, summary);
  }
};
/// Sent periodically, so that members detect the loss of the agent.
struct agent_heartbeat {
  template <class Archive>
  void serialize(Archive&) {}
};
using agent_message = std::variant<answer, fence, view, recovered, job_end, job_done, store_reply,
                                   stop_requested, job_stopped, agent_heartbeat>;

}  // namespace troupe::cluster::agent_wire
