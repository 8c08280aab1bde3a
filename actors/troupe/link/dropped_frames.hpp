#pragma once
#include <optional>
#include <string>

#include "troupe/link/inbound_gate.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::link {

/// Reports for the log what a process's transport and inbound gate have dropped. The supervisor asks for a
/// report when a generation or the job ends.
class dropped_frames {
 public:
  struct report {
    /// "stale_frames=2 old_generation=1": each counter that has changed, and by how much.
    std::string text;
    /// Frames that no process of the job sends: forged or damaged, or from a rank that is no member. The
    /// others belong to a generation, call or process that is over, and are expected after a failure.
    bool is_foreign = false;
  };
  /// What was dropped since the last report; none: nothing.
  std::optional<report> next(const gate_statistics& gate, const transport::transport_statistics& transport);

 private:
  gate_statistics gate_;
  transport::transport_statistics transport_;
};

}  // namespace troupe::actors::link
