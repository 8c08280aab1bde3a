#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors::inspector {

/// What can be wrong with a running job.
enum class finding_kind : std::uint8_t {
  stuck_rank,             ///< a device or loader does not return, and others wait for it
  stopped_process,        ///< it is suspended (SIGSTOP), or does not answer
  straggler,              ///< a device has become slower than it was, and the others have not
  unbalanced_partition,   ///< a device has had much more to compute than the others all along
  missing_in_collective,  ///< some members wait in a call that others have not entered
  growing_mailbox,        ///< messages come faster to an actor than it handles them
  link_errors             ///< frames that fail a check arrive
};
constexpr int num_finding_kinds = 7;
/// "stuck_rank", ...
const char* to_string(finding_kind kind);

/// Something wrong and who is at fault.
struct finding {
  finding_kind kind = finding_kind::stuck_rank;
  int rank = -1;            ///< the process at fault; -1: none in particular
  int device = -1;          ///< -1: none in particular
  std::string actor;        ///< its id in /api/v1/actors; empty: none in particular
  std::string text;         ///< one sentence, with figures
  std::int64_t since_ms{};  ///< Unix time at which it began, as far as is known
  std::int64_t seen_ms{};   ///< Unix time at which it was last seen

  /// Whether both are the same fault, whatever their texts and times are.
  bool is_same_as(const finding& other) const {
    return kind == other.kind && rank == other.rank && device == other.device && actor == other.actor;
  }
};

}  // namespace troupe::actors::inspector
