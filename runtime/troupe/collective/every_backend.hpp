#pragma once
#include <vector>

#include "troupe/collective/group/group_backend.hpp"

namespace troupe {

/// All backends over other libraries: gloo, mpi and nccl. A backend whose library was not found when Troupe
/// was built is there too, and throws bad_input with what to install. A program that links
/// troupe::every_backend needs the libraries that were found at run time.
std::vector<group_backend> every_backend();

}  // namespace troupe
