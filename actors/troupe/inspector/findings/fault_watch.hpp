#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/inspector/findings/core_waits.hpp"
#include "troupe/inspector/findings/device_waits.hpp"
#include "troupe/inspector/findings/mailbox_growth.hpp"
#include "troupe/inspector/findings/step_pace.hpp"
#include "troupe/inspector/views/finding.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// Says what is wrong with a job, from one view to the next. Not thread-safe.
class fault_watch {
 public:
  /// Steps that have finished since the last call of observe.
  void add(const messages::recent_step& step) { pace_.add(step); }
  /// What is wrong, in the order of kinds. Call it with views in the order of their time, some times a
  /// second. `now_ms`: Unix time.
  std::vector<finding> observe(const job_view& view, std::int64_t now_ms);

 private:
  std::vector<finding> stopped(const job_view& view, std::int64_t now_ms) const;
  std::vector<finding> paces(const job_view& view) const;
  bool lacked_cores(const finding& stuck) const;
  std::vector<finding> links(const job_view& view, std::int64_t now_ms);

  struct bad_frames {
    std::uint32_t incarnation = 0;
    std::uint64_t count = 0, newest = 0;
    std::int64_t at_ms = 0;  ///< the newest came; 0: none
  };
  device_waits waits_;
  core_waits cores_;
  step_pace pace_;
  mailbox_growth mailboxes_;
  std::map<int, bad_frames> bad_frames_;  ///< by rank
  std::uint64_t generation_ = 0;
  std::int64_t observed_ms_ = 0;
  std::int64_t quiet_until_ms_ = 0;  ///< nothing is said of what needs a past
  std::vector<finding> seen_;        ///< conditions that hold, whether or not for long enough to be findings
};

}  // namespace troupe::actors::inspector
