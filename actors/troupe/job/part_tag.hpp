#pragma once
#include "troupe/layout/part_id.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe {

/// Addresses the state of a part after `step` steps, of a job (job_definition::number).
tensor_tag part_tag(tensor_role role, std::uint64_t generation, std::uint64_t step, std::uint32_t job,
                    const part_id& part);
/// The part whose state a tensor with this tag is.
part_id part_of(const tensor_tag& tag);

}  // namespace troupe
