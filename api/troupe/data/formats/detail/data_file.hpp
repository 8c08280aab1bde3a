#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>

namespace troupe::files {
class regular_file;
}  // namespace troupe::files

namespace troupe::detail {

/// A file that is read at positions, a part at a time, and not held in memory. It is open between the first
/// read and close(). Thread-safe.
class data_file {
 public:
  /// Throws bad_input unless `file` is a regular file that can be read.
  explicit data_file(std::filesystem::path file);
  data_file(const data_file&) = delete;
  data_file& operator=(const data_file&) = delete;
  ~data_file();

  const std::filesystem::path& path() const { return path_; }
  /// When it was opened first.
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Fills `bytes` with those at `offset`. Throws bad_input if the file ends before or cannot be read, or if
  /// it is opened again and has another size or time of change than at first.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes);
  /// Starts reading a part into the system's cache. Throws bad_input if the file cannot be opened.
  void will_read(std::uint64_t offset, std::uint64_t size_bytes);
  void close();

 private:
  std::shared_ptr<files::regular_file> opened();

  std::filesystem::path path_;
  std::uint64_t size_bytes_ = 0;
  std::int64_t modified_ns_ = 0;
  std::mutex mutex_;                           // guards what follows
  std::shared_ptr<files::regular_file> file_;  ///< shared with the reads in progress
};

}  // namespace troupe::detail
