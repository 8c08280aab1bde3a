#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::collective {

/// A group of `size` threads of this process, for several devices in one process and for tests. Element i of
/// the result is for thread i. The communicators may be used and destroyed in any order. Throws
/// std::invalid_argument for a size below 1.
std::vector<std::unique_ptr<communicator>> make_local_group(int size,
                                                            const communicator_options& options = {},
                                                            std::string name = "local");

/// The same with other ranks than 0 to size - 1: `ranks` by member.
std::vector<std::unique_ptr<communicator>> make_local_group(std::vector<world_rank> ranks,
                                                            communicator_options options, std::string name);

}  // namespace troupe::collective
