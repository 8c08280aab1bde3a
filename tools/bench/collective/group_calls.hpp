#pragma once
#include <functional>
#include <string>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::bench {

/// Waiting calls make the progress: nobody else is woken, as in calls of bare MPI and Gloo.
constexpr call_options waiter_progress{.progress = progress_by::waiter};

/// A call of all members of the group with `x` [n], n a multiple of their number, which waits until it is
/// complete. Throws std::invalid_argument for another `operation` than
/// - all_reduce
/// - all_gather (of this member's n-th part), reduce_scatter (into it)
/// - broadcast, reduce (from and to rank 0)
/// - barrier
/// - p2p: to and fro between ranks 0 and 1
/// - messages: from rank 0 to rank 1
std::function<void()> make_group_call(communicator& group, const std::string& operation, const tensor& x);

}  // namespace troupe::bench
