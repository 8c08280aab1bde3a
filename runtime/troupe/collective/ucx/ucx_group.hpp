#pragma once
#include <memory>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/collective/ucx/ucx_group_resources.hpp"

namespace troupe {

/// This process's end of a group of processes, which all call this with the same name and ranks; returns when
/// all have. The name together with the ranks is used once in `rendezvous`. Processes of one host (the same
/// kernel, user and network namespace) reach into each other's memory; if not all are on one, all exchange
/// messages over resources.network's interface.
///
/// Throws collective_error: timed_out with the ranks that did not come within options.timeout, lost_member
/// with one that ended meanwhile, transport if the members cannot reach each other. Throws bad_input on all
/// members if their network_sizes differ.
std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& rendezvous,
                                             ucx_group_resources& resources,
                                             const communicator_options& options = {});

}  // namespace troupe
