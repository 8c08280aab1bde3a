#pragma once
#include <vector>

#include "troupe/fsdp/detail/sharded_model.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

/// The state of all pieces, on the CPU of every member, with names and shapes as one optimizer of the whole
/// parameters has them. All members call it. Throws std::runtime_error if members' states do not fit.
std::vector<named_tensor> gather_state(sharded_model& model, const optim::optimizer_state& optimizer);
/// Gives the optimizer of this member's pieces what it needs of a whole state, which all members give. All
/// members call it. Throws std::runtime_error on every member and changes nothing if something is missing or
/// unknown, or has another shape.
void load_whole_state(sharded_model& model, optim::optimizer_state& optimizer,
                      const std::vector<named_tensor>& saved);

}  // namespace troupe::detail
