#pragma once
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A file that is read once from its beginning, unpacked if it is gzipped (RFC 1952, one stream or several).
/// Each stream is verified by its trailer, check sum and size, before at_end() says true. All errors are
/// bad_input that names the file.
class unpacked_file {
 public:
  /// Throws for a file that cannot be read or is empty.
  explicit unpacked_file(const std::filesystem::path& path);
  ~unpacked_file();
  unpacked_file(const unpacked_file&) = delete;
  unpacked_file& operator=(const unpacked_file&) = delete;

  /// Of the file itself.
  std::uint64_t size_bytes() const { return size_bytes_; }
  bool is_gzipped() const { return is_gzipped_; }
  /// How many of the bytes there were; less than asked for at the end. Throws for a gzip stream that is
  /// damaged or cut, and for bytes behind it.
  std::size_t read(std::span<std::byte> out);
  /// Whether everything was read. Throws as read().
  bool at_end();
  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  bool refill();
  std::size_t unpack(std::span<std::byte> out);
  void begin_next_stream();

  std::string name_;
  std::uint64_t size_bytes_ = 0;
  std::ifstream file_;
  std::vector<char> buffer_;
  bool is_gzipped_ = false;
  bool stream_has_ended_ = false;
  z_stream stream_{};  ///< its input is in the buffer
};

}  // namespace troupe
