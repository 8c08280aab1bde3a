#pragma once
#include <string>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// A file in memory (memfd_create) that can be sealed, empty. Throws system_failure, which says what to do
/// where descriptors have run out or the system refuses such files. `action`: "make memory for events".
unique_fd make_memory_file(const std::string& name, const std::string& action);

}  // namespace troupe::posix
