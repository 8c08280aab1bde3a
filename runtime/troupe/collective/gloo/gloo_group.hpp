#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group_backend.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// What this process has for all its groups over gloo: a listening socket and the thread that serves it.
/// Outlives them.
class gloo_group_resources {
 public:
  /// `interface`: of the network on which the other members reach this host. Throws bad_input if there is
  /// none of that name here, or if Troupe was built without gloo.
  explicit gloo_group_resources(const std::string& interface = "lo");
  const std::shared_ptr<void>& device() const { return device_; }

 private:
  std::shared_ptr<void> device_;
};

/// This process's end of a group of processes over gloo's TCP transport, which all call this with the same
/// name and ranks; returns when all have. The name together with the ranks is used once in `rendezvous`,
/// which outlives the group. CPU memory.
///
/// Reductions: all_reduce and reduce in gloo's order (a ring), which depends on the number of members and on
/// where an element stands: not the bits of the fixed tree, but the same bits on all members and in each run.
/// reduce_scatter brings the parts together and has the tree's bits. All dtypes; bf16 and f16 are summed in
/// f32 and rounded once. gloo's all_reduce needs twice the memory for these two.
///
/// Each call first exchanges what it is (one small all-gather), so that a mismatch is named. A thread for the
/// collectives and one for each peer and direction of messages wait in gloo; nothing is promised about speed.
/// A lost member is noticed by its closed socket, a stopped one by the time-out, and so is by the sender of a
/// large message who of the others gave up meanwhile; the others are then asked through the store, for two
/// seconds at most, who they are. A member that dies in the moment in which it
/// connects can take the process that it connects to with it: gloo's own thread does not catch what it throws
/// then (getpeername).
///
/// Throws collective_error: timed_out with a rank that did not come within options.timeout, transport with
/// one that cannot be reached, what `rendezvous` throws when it knows of a loss; bad_input if Troupe was
/// built without gloo.
std::unique_ptr<communicator> make_gloo_group(const group_description& group, store& rendezvous,
                                              gloo_group_resources& resources,
                                              const communicator_options& options = {});

/// `--backend gloo` for a World: groups on the job's network interface.
group_backend gloo_groups();

}  // namespace troupe
