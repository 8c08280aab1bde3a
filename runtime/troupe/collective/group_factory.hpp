#pragma once
#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group_backend.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

struct ucx_group_resources;

/// Makes groups with the backend that the job asked for: "ucx", "local" (threads of one process), or one that
/// the program links. For one thread; outlives its groups.
class group_factory {
 public:
  /// All processes of the job do this alike. Throws bad_input, with what to link or to install, for a backend
  /// that is not `linked`, or not in this build, or cannot be used by this job.
  group_factory(const std::string& backend, const std::vector<group_backend>& linked,
                group_maker_options options);
  ~group_factory();

  /// Before the first group of several: `job_token` is what the job's processes know and others do not.
  void join(std::string job_token) { job_token_ = std::move(job_token); }

  /// As group_maker::make. A group of one needs no backend, but where its backend wants it.
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options);

 private:
  std::string backend_;
  group_maker_options options_;
  std::string job_token_;
  bool makes_groups_of_one_ = false;
  std::unique_ptr<group_maker> linked_;       // the program's, if the job asked for it
  std::unique_ptr<ucx_group_resources> ucx_;  // from the first such group on
};

}  // namespace troupe
