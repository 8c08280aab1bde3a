#pragma once
#include <string>

#include "troupe/config/job_options.hpp"
#include "troupe/mesh/device_places.hpp"

namespace troupe::detail {

/// Where a process that is the `local_rank`-th of its host hosts devices. Throws bad_input unless it has all
/// GPUs that job_options::device names, whichever of the job's devices it may come to host. `replaces`: it
/// replaces a lost process, which had them: std::runtime_error, since a GPU may come back.
mesh::process_places places_of(const job_options& options, int local_rank, bool replaces = false);

/// What the bits depend on in a process with these devices: the CPU's class, or that of its GPUs. Throws
/// bad_input if these are of different classes.
std::string numeric_class_of(const mesh::process_places& places);

}  // namespace troupe::detail
