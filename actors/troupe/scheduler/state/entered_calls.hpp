#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "troupe/job/call.hpp"

namespace troupe::actors::scheduler {

/// Which call each process has entered, with its request and the description of its job. The scheduler runs a
/// call when all processes have entered it and their requests agree. A later enter() of a rank replaces the
/// earlier one.
class entered_calls {
 public:
  /// `description_hash`: hash of this rank's job description; 0: it has no job yet.
  void enter(int rank, const job::call_request& request, std::uint64_t description_hash = 0);
  /// The description behind the hash that this rank enters with.
  void learn(int rank, const agreement::job_description& description) { descriptions_[rank] = description; }
  /// Forgets all entries; descriptions stay.
  void clear() { entered_.clear(); }

  /// Whether all `world_size` processes are in the call of this index.
  bool is_complete(int world_size, std::size_t index) const;
  /// Whether a rank that has entered a call has a job.
  bool has_job() const { return !hashes_.empty(); }
  /// The lowest rank's request. At least one rank must have entered.
  const job::call_request& request() const { return entered_.begin()->second; }
  /// Of what the processes ask for, if they agree: equal in every job whose program makes the same call with
  /// the same data, however its model is divided among processes.
  std::uint64_t hash_of_request() const;
  /// Which ranks differ, and in which fields of the job or the request; none if all agree.
  std::optional<std::string> disagreement() const;
  /// The problems that ranks reported in their requests, "rank 0: ..."; empty if there are none.
  std::string problems() const;
  /// By rank.
  const std::map<int, job::call_request>& entered() const { return entered_; }

 private:
  std::optional<std::string> difference_of_jobs() const;

  std::map<int, job::call_request> entered_;
  std::map<int, std::uint64_t> hashes_;  ///< of ranks that have a job
  std::map<int, agreement::job_description> descriptions_;
};

}  // namespace troupe::actors::scheduler
