#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "troupe/job/call.hpp"

namespace troupe {

/// Which process is in which call, and of which job. A process that enters again has gone on to another one.
class roll_call {
 public:
  /// `description_hash`: of the job of this rank; 0: it has none yet.
  void enter(int rank, const call_request& request, std::uint64_t description_hash = 0);
  /// What the hash that this rank enters with is of.
  void learn(int rank, const job_description& description) { descriptions_[rank] = description; }
  /// Nobody is in a call; descriptions stay.
  void clear() { entered_.clear(); }

  /// Whether all `world_size` processes are in the call of this index.
  bool is_complete(int world_size, std::size_t index) const;
  /// The lowest rank's. There must be one.
  const call_request& request() const { return entered_.begin()->second; }
  /// Says which ranks differ from the others, and in which fields of the job, or else of the call.
  std::optional<std::string> disagreement() const;
  /// What keeps a call from being, as some ranks know already: "rank 0: ...". None if nothing does.
  std::string problems() const;
  /// By rank.
  const std::map<int, call_request>& entered() const { return entered_; }

 private:
  std::optional<std::string> difference_of_jobs() const;

  std::map<int, call_request> entered_;
  std::map<int, std::uint64_t> hashes_;  ///< of ranks that have a job
  std::map<int, job_description> descriptions_;
};

}  // namespace troupe
