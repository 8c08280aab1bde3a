#pragma once
#include <string>

namespace troupe::usage {

/// "0.1.0 (commit 0428ac4d1f2e)"; the commit is "unknown" where the sources were no repository.
std::string version_text();

}  // namespace troupe::usage
