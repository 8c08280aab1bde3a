#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/group_backend.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe {

/// What all groups of this process over gloo share: a listening socket and its thread. Outlives the groups.
class gloo_group_resources {
 public:
  /// interface: the network interface on which the other members reach this host. Throws bad_input if this
  /// host has none of that name, or if Troupe was built without gloo.
  explicit gloo_group_resources(const std::string& interface = "lo");
  const std::shared_ptr<void>& device() const { return device_; }

 private:
  std::shared_ptr<void> device_;
};

/// Makes this process's communicator of a group over gloo's TCP transport. All members call it with the same
/// name and ranks, and it returns when all have. The name together with the ranks is used once in `keys`,
/// which outlives the group. CPU memory.
///
/// Reductions: all_reduce and reduce use gloo's order (a ring), which depends on the number of members and on
/// the position of an element. The result differs from the fixed tree's, but is the same on all members and
/// in each run. reduce_scatter has the bits of the tree. All dtypes; bf16 and f16 are summed in f32 and
/// rounded once, for which gloo's all_reduce needs twice the memory.
///
/// Each call first exchanges its signature (one small all-gather), so that a mismatch is named. One thread
/// for the collectives and one for each peer and direction of messages block in gloo. Failures: a lost member
/// is noticed by its closed socket, a stopped one by the time-out. The sender of a large message notices only
/// by the time-out that another member has aborted. Then failure reports are exchanged through the store, for
/// two seconds at most. A member that dies while it connects can end the process it connects to, since gloo's
/// thread does not catch its own exception then (getpeername).
///
/// Throws collective_error: timed_out with a rank that did not come within options.timeout, transport with
/// one that cannot be reached. Throws what `keys` throws when it knows of a loss, and bad_input if Troupe was
/// built without gloo.
std::unique_ptr<communicator> make_gloo_group(const group_description& group, collective::store& keys,
                                              gloo_group_resources& resources,
                                              const communicator_options& options = {});

/// `--backend gloo` for a World: groups on the job's network interface.
group_backend gloo_groups();

}  // namespace troupe
