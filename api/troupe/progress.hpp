#pragma once
#include <string>

#include "troupe/trainer.hpp"

namespace troupe {

/// What a training program tells the person in front of it, on rank 0: a live line on a terminal, a line now
/// and then in a file or pipe, or with options.json one JSON object per line and nothing else (ARCHITECTURE's
/// `step`, `recovered` and `done` events). Silent on other ranks.
class progress {
 public:
  explicit progress(const World& world);
  void on_step(const step_event& event);
  void on_resumed(const resume_event& event);
  void on_recovered(const recovery_event& event);
  /// The plan beside what was measured, and where trace and snapshots lie.
  void on_fitted(const fit_result& fitted, const plan& planned);
  void on_done(const evaluation_result& evaluation, const std::string& weights_sha256);
  trainer_callbacks callbacks();

 private:
  void print(const std::string& line);
  void clear_line();

  job_options options_;
  bool speaks_;
  bool live_;
  int num_devices_;
  bool line_open_ = false;
  std::int64_t last_print_ns_ = 0;
};

}  // namespace troupe
