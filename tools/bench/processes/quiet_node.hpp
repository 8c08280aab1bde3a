#pragma once
#include <memory>

#include "troupe/node/node.hpp"

namespace troupe::bench {

/// A job of this one process, whatever the environment says, or a process of the launcher's job, that logs
/// warnings only.
std::unique_ptr<node> start_local_node();
std::unique_ptr<node> start_launched_node();

/// The same batch for every step: u8 [num_microbatches, 1], zeros.
std::shared_ptr<batch_source> make_same_batches(int num_microbatches);

/// A training call up to `num_steps`. Throws job_failed.
call_result train_steps(node& self, std::shared_ptr<const job_definition> job, std::uint64_t num_steps);

}  // namespace troupe::bench
