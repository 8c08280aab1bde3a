#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

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

/// Whether `folder` has the file that `name` returns, which is asked again before each look; none: nobody
/// asks any more, and the answer is yes. Network file systems may show a new file some time later: looks
/// again and again for `patience`.
bool sees_marker(const std::filesystem::path& folder, const std::function<std::optional<std::string>()>& name,
                 std::chrono::milliseconds patience);

}  // namespace troupe
