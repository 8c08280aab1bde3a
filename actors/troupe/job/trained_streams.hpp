#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace troupe {

/// Which stream each step of a job takes its samples from, in words that are equal for equal orders of the
/// samples; empty for data that is no stream. A snapshot has that of its step, since a job that resumes
/// within an epoch must go on in the same order. Thread-safe.
class trained_streams {
 public:
  /// The job resumes from a snapshot of `step` steps, the last of which took samples from `stream`.
  void resume(std::uint64_t step, std::string stream);
  /// A training call takes the steps after `first` up to `last` from `stream`. Throws bad_input if the job
  /// resumes within them from a snapshot of another stream.
  void add(std::uint64_t first, std::uint64_t last, const std::string& stream);
  /// That of the last of `step` steps.
  std::string at(std::uint64_t step) const;

 private:
  mutable std::mutex mutex_;                          // guards what follows
  std::map<std::uint64_t, std::string> begins_with_;  ///< by the number of steps before
  std::uint64_t resumed_step_ = 0;
  std::string resumed_stream_;
};

}  // namespace troupe
