#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "troupe/layout/part_id.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::job {

struct job_definition;

/// The newest complete copy of a job's state that is in this process's memory, for the program's threads. The
/// stages of the process and its peer copy store put in each copy that they get. Thread-safe.
///
/// It never goes back: the state after step t is the same bits whenever it was computed, so a copy stays
/// right when a recovery restores an older step. It costs no memory but in between: it shares that of the
/// stages and the store, and holds on to it until the next copy is complete.
class latest_copies {
 public:
  struct complete_copy {
    std::uint64_t step = 0;      ///< runs of the plan before the copy
    std::vector<tensor> packed;  ///< one for each part of replica 0, in the order of parts
  };

  /// `parts`: all of the job.
  explicit latest_copies(const std::vector<layout::job_part>& parts);
  /// An immutable packed state. Ignored unless `step` is newer than what is complete, and `part` stands for
  /// one of replica 0.
  void put(std::uint64_t step, const layout::part_id& part, const tensor& packed);
  /// None: no copy was complete yet.
  std::optional<complete_copy> get() const;

 private:
  const layout::job_part* wanted_for(const layout::part_id& held) const;

  std::vector<layout::job_part> wanted_;  ///< of replica 0
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::map<layout::part_id, tensor>> incomplete_;  ///< by step
  std::optional<complete_copy> complete_;
};

/// Whether all copies of a complete state come to the memory of rank `rank` of `world_size`, while devices
/// are hosted as at the job's beginning. They do if, for each stage, the rank hosts it or keeps the second
/// copy for the rank that does.
bool gets_complete_copies(const job_definition& job, int rank, int world_size);

}  // namespace troupe::actors::job
