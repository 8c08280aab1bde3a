#pragma once
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace troupe::detail {

/// Reads a file sequentially and decompresses it if it is gzipped (RFC 1952, one or several members, and
/// zeros as padding after the last). Each member's checksum and size are verified before at_end() returns
/// true. All errors are bad_input with the file's name.
class gzip_reader {
 public:
  /// Throws if the file cannot be read or is empty.
  explicit gzip_reader(const std::filesystem::path& path);
  ~gzip_reader();
  gzip_reader(const gzip_reader&) = delete;
  gzip_reader& operator=(const gzip_reader&) = delete;

  /// The size of the file, compressed or not.
  std::uint64_t size_bytes() const { return size_bytes_; }
  bool is_gzipped() const { return is_gzipped_; }
  /// Fills `out` and returns the number of bytes read, less than out.size() only at the end. Throws for a
  /// corrupt or truncated gzip member and for bytes after it.
  std::size_t read(std::span<std::byte> out);
  /// Whether the whole file was read. Throws as read().
  bool at_end();
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  bool refill();
  std::size_t unpack(std::span<std::byte> out);
  bool begin_next_stream();

  std::string name_;
  std::uint64_t size_bytes_ = 0;
  std::ifstream file_;
  std::vector<char> buffer_;
  bool is_gzipped_ = false;
  bool stream_has_ended_ = false;
  z_stream stream_{};  ///< zlib's state; its input is in buffer_
};

}  // namespace troupe::detail
