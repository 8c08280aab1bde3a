#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::actors::job {

/// Which data set each step of a job takes its samples from, and how many steps of its own that data set has
/// had. Another data set begins with its first epoch; one that is trained on again goes on where it was.
/// Steps with batches that the program gave count for the data set before them, or for the first one.
/// Thread-safe.
class trained_data {
 public:
  /// The job resumes from a snapshot of `step` steps, the last of which took samples from `data`. Empty: from
  /// batches that the program gave; none: unknown. Both are not compared.
  void resume(std::uint64_t step, std::optional<std::string> data);
  /// A training call takes the steps after `first` up to `last` from the data set at `samples`, an address
  /// that stays its own. `data`: describes it, in words that are equal for equal orders of the samples.
  /// Throws bad_input if the job resumes within these steps from a snapshot of other data.
  void add(std::uint64_t first, std::uint64_t last, const void* samples, const std::string& data);
  /// How many steps the data set has had before the job's step `step`, counted from 0.
  std::uint64_t position_of(const void* samples, std::uint64_t step) const;
  /// The data of the last of `step` steps; empty: batches that the program gave.
  std::string at(std::uint64_t step) const;

 private:
  struct range {
    std::uint64_t end = 0;
    const void* samples = nullptr;
    std::string data;
    std::uint64_t position = 0;  ///< steps of the data set before
  };
  using range_map = std::map<std::uint64_t, range>;
  range_map::const_iterator last_of(const void* samples, range_map::const_iterator before) const;

  mutable std::mutex mutex_;  // guards what follows
  range_map ranges_;          ///< by the number of steps before
  std::uint64_t resumed_step_ = 0;
  std::optional<std::string> resumed_data_;
};

}  // namespace troupe::actors::job
