#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/process/process.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::bench {

/// A job of this one process, whatever the environment says, or one process of the launcher's job. Both log
/// warnings only. `link`: see ucx_transport_options.
std::unique_ptr<actors::process::process> start_local_process();
std::unique_ptr<actors::process::process> start_launched_process(transport::send_delay_ptr delay = nullptr);

/// A group of all processes of the job.
group_description all_ranks(const actors::process::process& self, const std::string& name);

/// Makes groups of all processes of the job over `ucx`.
class ucx_groups {
 public:
  /// `self` outlives it.
  explicit ucx_groups(actors::process::process& self) : self_(self), resources_(self.group_token()) {}
  /// All processes do this alike, with each name once.
  std::unique_ptr<communicator> make(const std::string& name, const communicator_options& options = {}) {
    return make_ucx_group(all_ranks(self_, name), self_.keys(), resources_, options);
  }

 private:
  actors::process::process& self_;
  collective::ucx_group_resources resources_;
};

/// The same batch in every step.
std::shared_ptr<batch_source> make_constant_source(batch samples);

/// Makes a training call up to `num_steps`, on the same batch in every step; if none is given, on u8
/// [num_microbatches, 1], zeros. Throws job_failed.
actors::job::call_result train_steps(actors::process::process& self,
                                     std::shared_ptr<const actors::job::job_definition> job,
                                     std::uint64_t num_steps, const batch& samples = {});

}  // namespace troupe::bench
