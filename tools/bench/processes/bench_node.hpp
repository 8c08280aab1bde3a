#pragma once
#include <memory>

#include "troupe/node/node.hpp"

namespace troupe::bench {

/// A job of this one process, whatever the environment says, or one process of the launcher's job. Both log
/// warnings only.
std::unique_ptr<node> start_local_node();
std::unique_ptr<node> start_launched_node();

/// Makes a training call up to `num_steps`, on the same batch in every step: u8 [num_microbatches, 1], zeros.
/// Throws job_failed.
call_result train_steps(node& self, std::shared_ptr<const job_definition> job, std::uint64_t num_steps);

}  // namespace troupe::bench
