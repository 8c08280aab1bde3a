#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/libraries/nccl/nccl_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::testing {

/// The emulated GPU of a member of a test. No member is given GPU 0, the one that is current on every thread
/// that chose none.
inline device gpu_of_member(int member) { return {device::kind::cuda, member + 1}; }

/// A member's end of the group of ranks 0 to size - 1.
std::unique_ptr<communicator> nccl_member(collective::store& place, int size, int member,
                                          const communicator_options& options = {});

/// Runs `body` on a thread for each member of a group of `size` over the NCCL of tests. What they threw, by
/// member, or "".
std::vector<std::string> run_nccl_members(
    int size, const std::function<void(communicator& all, collective::store& place)>& body,
    const communicator_options& options = {});

/// What a call fails with; throws std::runtime_error if it does not.
collective_error failure_of(const std::function<void()>& call);

/// Nothing that NCCL forbids was done, and every communicator has ended.
void check_nccl_is_unharmed();

}  // namespace troupe::testing
