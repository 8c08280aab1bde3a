#pragma once
#include <string>

#include "troupe/trainer.hpp"

namespace troupe {

/// Prints training progress on rank 0: a live status line on a terminal, a line from time to time in a file
/// or pipe. With options.json it prints one JSON object per line and nothing else (events `step`, `resumed`,
/// `recovered`, `memory`, `done`). Prints nothing on other ranks.
class progress {
 public:
  explicit progress(const World& world);
  void on_step(const step_event& event);
  void on_resumed(const resume_event& event);
  void on_recovered(const recovery_event& event);
  /// Prints the planned and the measured timeline, and the paths of trace and snapshots.
  void on_fitted(const fit_result& fitted, const plan& planned);
  /// Prints a table, or the event `memory`.
  void on_memory(const memory_report& report);
  void on_done(const evaluation_result& evaluation, const std::string& weights_sha256);
  trainer_callbacks callbacks();

 private:
  void print(const std::string& line);
  void clear_line();

  job_options options_;
  bool is_active_;
  bool is_terminal_;
  int num_devices_;
  bool line_open_ = false;
  bool has_only_resumed_ = false;  ///< from a snapshot, and trained nothing since
  std::int64_t last_print_ns_ = 0;
};

}  // namespace troupe
