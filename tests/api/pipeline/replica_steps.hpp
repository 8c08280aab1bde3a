#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "troupe/optim/optimizer.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::testing {

/// A stage of three Linear layers whose first two weights have buckets of their own, 1 and 2.
std::unique_ptr<program::stage_program> program_with(optim::Optimizer optimizer,
                                                     const numeric_options& numerics = {});

/// Adam that does not say that it is elementwise, so that it steps when all gradients are there.
optim::Optimizer whole_adam();

/// The only microbatch of one of two replicas. Returns the buckets in the order in which they leave.
/// `on_bucket`: called with each.
std::vector<int> compute(program::stage_program& program, std::uint64_t step, bool in_one = true,
                         const std::function<void(int)>& on_bucket = nullptr);

/// As if both replicas had the same gradients, in two parts; all have left before the first sum comes.
/// `broken` gets a NaN.
void take_sums(program::stage_program& program, int broken = -1);

void check_same(program::stage_program& one, program::stage_program& other);

std::vector<named_tensor> copy_of_state(program::stage_program& program);
/// Discards what `program`, which steps by Adam, has done of step 0, and does the step from `saved`: nothing
/// of the first try is left.
void check_discarded(program::stage_program& program, const std::vector<named_tensor>& saved);

}  // namespace troupe::testing
