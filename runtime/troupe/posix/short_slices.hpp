#pragma once

namespace troupe::posix {

/// Requests a short scheduler time slice (sched_attr::sched_runtime, EEVDF) for the calling thread, which
/// runs briefly and often. When it wakes on a busy core it is scheduled at once instead of at the next tick
/// (4 ms), and is preempted as soon. Its share of the processor stays the same. Needs no privilege; no effect
/// before Linux 6.12.
void request_short_slices();

}  // namespace troupe::posix
