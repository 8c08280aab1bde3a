#pragma once
#include <memory>

#include "troupe/cluster/membership.hpp"

namespace troupe::cluster {

/// The membership of a job that is one process: a view of one, a new one for each request_generation.
/// Events come on the caller's thread. `events` must outlive it.
std::unique_ptr<membership> make_local_membership(membership_events& events);

}  // namespace troupe::cluster
