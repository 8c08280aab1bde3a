#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe::files {

/// A file with a name of its own in a folder, by which processes of other hosts see whether theirs is the
/// same folder. Removed at the end of the scope.
class folder_marker {
 public:
  /// Throws snapshot_error if the file cannot be made.
  explicit folder_marker(const std::filesystem::path& folder);
  folder_marker(const folder_marker&) = delete;
  folder_marker& operator=(const folder_marker&) = delete;
  ~folder_marker();
  std::string name() const { return file_.filename().string(); }

 private:
  std::filesystem::path file_;
};

/// Whether `folder` has the file `name`. Network file systems may show a new file some time later: looks
/// again and again for `patience`. Between two looks `wait_for_next` waits, and returns the name to look for
/// then; none: nobody asks any more, and the answer is yes.
bool sees_marker(const std::filesystem::path& folder, std::string name,
                 const std::function<std::optional<std::string>()>& wait_for_next,
                 std::chrono::milliseconds patience);

}  // namespace troupe::files
