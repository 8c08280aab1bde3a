#pragma once
#include <vector>

#include "troupe/collective/group_backend.hpp"

namespace troupe {

/// All backends that stand on other libraries: gloo, mpi and nccl. Those of which the library was not found
/// when Troupe was built are there too, and refuse with what to install. A program that links
/// troupe::every_backend needs the libraries that were found when it runs.
std::vector<group_backend> every_backend();

}  // namespace troupe
