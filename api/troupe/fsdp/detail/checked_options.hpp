#pragma once
#include "troupe/fsdp/fully_sharded_data_parallel.hpp"

namespace troupe::detail {

/// Throws std::invalid_argument naming the option that is out of its range for so many members.
void require_in_range(const fully_sharded_options& options, int num_members);
std::int64_t elements_of_a_unit(const fully_sharded_options& options);

}  // namespace troupe::detail
