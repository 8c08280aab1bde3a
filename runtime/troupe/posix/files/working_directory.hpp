#pragma once
#include <filesystem>

namespace troupe::posix {

/// The path from the root on, of a file that need not exist. Throws bad_input if the path begins in the
/// working directory and that was removed.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace troupe::posix
