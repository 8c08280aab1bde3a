#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::posix {

/// A folder that only this user can enter.
struct private_folder {
  std::filesystem::path path;
  std::string problem;  ///< why there is no such folder; empty: there is one
};

/// What keeps `folder` from being private: of this user, mode 0700, no symbolic link. Empty: it is.
std::string problem_of_private(const std::filesystem::path& folder);

/// troupe-UID in `parent`, made unless it is there. Another user may have taken that name, to keep jobs of
/// this one from starting: then troupe-UID-XXXXXX. Folders that others may change without a sticky bit hold
/// none.
private_folder private_folder_in(const std::filesystem::path& parent);

/// All that private_folder_in() has made in `parent`, in the order of their names.
std::vector<std::filesystem::path> private_folders_in(const std::filesystem::path& parent);

}  // namespace troupe::posix
