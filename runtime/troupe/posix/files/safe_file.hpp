#pragma once
#include <fcntl.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// A file opened for writing, or why it is not.
struct safe_file {
  unique_fd fd;
  std::string problem;   ///< what stands there instead, for example "it is a symbolic link"; empty if opened
  int error_number = 0;  ///< errno of the call that failed; 0 if `problem` is none of the system's
};

enum class file_content { kept, truncated };
/// Whose file may be opened. anyone: for a file that is only locked, in a folder that several users share.
enum class file_owner { this_user, anyone };

struct safe_file_options {
  mode_t mode = 0600;  ///< of the file, whatever the umask; a file of this user that was there gets it too
  file_content content = file_content::kept;
  file_owner owner = file_owner::this_user;
  int flags = 0;  ///< further ones of open(2), such as O_APPEND
};

/// Opens `path` for reading and writing, or makes it. Where other users may write to the folder, they may
/// have put something there under a name that they can foresee. It may be a symbolic link, a second name of a
/// file of this user, a pipe, or a file of their own. Nothing of that is opened, and nothing is changed or
/// truncated before it is known. Symbolic links to folders on the way are followed: those are the user's own
/// words.
safe_file open_safely(const std::filesystem::path& path, const safe_file_options& options = {});

/// A new file, for writing, in place of what an earlier process left under this name: that is removed, never
/// opened. `mode`: the umask applies.
safe_file create_anew(const std::filesystem::path& path, mode_t mode);

/// Who else could replace or remove files in `folder`, for example "its group (120) may write to it (mode
/// 0775)". It may also be that everybody may write to a folder around it. Empty if only this user and root
/// can. A folder with the sticky bit, such as /tmp, counts as safe for files that are opened as above. A
/// group of the user's own number is the user's own.
std::string others_who_may_change(const std::filesystem::path& folder);

/// Who else could know what `file` holds, for example "everybody may read it (mode 0644)", or that its owner
/// is another user. Empty if only this user and root can, or if it has no name.
std::string others_who_may_read(const std::filesystem::path& file);

}  // namespace troupe::posix
