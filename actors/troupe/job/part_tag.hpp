#pragma once
#include "troupe/layout/part_id.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::actors::job {

/// Addresses the state of a part after `step` steps, of a job (job_definition::number).
transport::tensor_tag part_tag(transport::tensor_role role, std::uint64_t generation, std::uint64_t step,
                               std::uint32_t job, const layout::part_id& part);
/// The part whose state a tensor with this tag is.
layout::part_id part_of(const transport::tensor_tag& tag);

}  // namespace troupe::actors::job
