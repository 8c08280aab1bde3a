#pragma once
#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/group_backend.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::collective {

struct ucx_group_resources;

/// Makes the groups of this process with the job's backend: "ucx", "local" (threads of one process), or one
/// that the program links. Outlives its groups.
class backend_registry {
 public:
  /// The same `backend` in all processes of the job. Throws bad_input, with what to link or install, if it is
  /// not `linked`, not in this build, or cannot be used by this job.
  backend_registry(const std::string& backend, const std::vector<group_backend>& linked,
                   backend_options options);
  ~backend_registry();

  /// Before the first group of several processes. job_token: a secret of the job's processes.
  void set_job_token(std::string job_token) { job_token_ = std::move(job_token); }

  /// Advances the calls of all its groups.
  const std::shared_ptr<progress_engine>& engine() const { return engine_; }

  /// Whether the backend is one that the program links, with sums of its own; else all of a job's are those
  /// of the fixed tree.
  bool is_linked() const { return backend_ != "ucx" && backend_ != "local"; }
  /// As backend_instance::make. A group of one process does not need the backend, unless the backend wants
  /// it. Where the backend is not linked, by one thread.
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     communicator_options options);

 private:
  std::string backend_;
  backend_options options_;
  std::string job_token_;
  std::shared_ptr<progress_engine> engine_ = std::make_shared<progress_engine>();
  bool makes_groups_of_one_ = false;
  std::unique_ptr<backend_instance> linked_;  // of a linked backend
  std::unique_ptr<ucx_group_resources> ucx_;  // made for the first group
};

}  // namespace troupe::collective
