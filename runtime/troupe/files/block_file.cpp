#include "troupe/files/block_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/temporary_name.hpp"

namespace troupe::files {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::string_view block_magic = "TROUPEBL";
constexpr std::uint32_t block_version = 2;
constexpr std::size_t block_prefix_bytes = 16;
/// Blocks may be small, so the file is written and read in pieces of this size.
constexpr std::size_t block_buffer_bytes = std::size_t{1} << 20;

std::array<std::byte, block_prefix_bytes> prefix() {
  std::array<std::byte, block_prefix_bytes> bytes{};
  std::memcpy(bytes.data(), block_magic.data(), block_magic.size());
  std::memcpy(bytes.data() + block_magic.size(), &block_version, sizeof block_version);
  return bytes;
}

void append_to(std::vector<std::byte>& piece, std::span<const std::byte> bytes) {
  piece.insert(piece.end(), bytes.begin(), bytes.end());
}

void check_prefix(std::span<const std::byte> found) {
  if (std::memcmp(found.data(), block_magic.data(), block_magic.size()) != 0)
    throw snapshot_error("it does not begin with " + std::string(block_magic));
  std::uint32_t format = 0;
  std::memcpy(&format, found.data() + block_magic.size(), sizeof format);
  if (format != block_version)
    throw snapshot_error("format version " + std::to_string(format) + ", but this program reads version " +
                         std::to_string(block_version));
}

void check_beginning(regular_file& file, const written_blocks& expected) {
  auto least = std::max<std::uint64_t>(expected.size_bytes, block_prefix_bytes);
  if (expected.size_bytes < block_prefix_bytes || file.size_bytes() < least)
    throw snapshot_error("it has " + std::to_string(file.size_bytes()) + " bytes, of which " +
                         std::to_string(expected.size_bytes) + " are to be read, expected at least " +
                         std::to_string(least));
  running_checksum sum;
  std::vector<std::byte> piece(block_buffer_bytes);
  bool is_first = true;
  for (auto left = expected.size_bytes; left > 0;) {
    auto bytes = std::span(piece).first(std::min<std::uint64_t>(left, piece.size()));
    file.read_all(bytes);
    if (std::exchange(is_first, false)) check_prefix(bytes);
    sum.add(bytes);
    left -= bytes.size();
  }
  if (auto found = sum.result(); found != expected.sum)
    throw snapshot_error("damaged: checksum " + wire::to_hex(found) + ", expected " +
                         wire::to_hex(expected.sum));
}

/// The first `left` bytes of a file.
class buffered_input {
 public:
  buffered_input(regular_file& file, std::uint64_t left) : file_(file), left_(left) {}
  std::uint64_t left() const { return left_ + buffer_.size() - position_; }
  /// At most left() bytes.
  void read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      if (position_ == buffer_.size()) fill();
      auto count = std::min(bytes.size(), buffer_.size() - position_);
      std::ranges::copy(std::span(buffer_).subspan(position_, count), bytes.begin());
      position_ += count;
      bytes = bytes.subspan(count);
    }
  }

 private:
  void fill() {
    buffer_.resize(std::min<std::uint64_t>(left_, block_buffer_bytes));
    file_.read_all(buffer_);
    left_ -= buffer_.size();
    position_ = 0;
  }

  regular_file& file_;
  std::uint64_t left_;
  std::vector<std::byte> buffer_;
  std::size_t position_ = 0;
};

/// Call it after check_beginning: a block size that does not fit then is a bug of the writer or a forged
/// file.
void give_blocks(regular_file& file, const written_blocks& expected, const block_sink& take) {
  buffered_input in(file, expected.size_bytes);
  std::array<std::byte, block_prefix_bytes> begin{};
  in.read(begin);
  std::vector<std::byte> block;
  while (in.left() > 0) {
    std::uint32_t size = 0;
    if (in.left() >= sizeof size) in.read(std::as_writable_bytes(std::span(&size, 1)));
    if (size == 0 || size > max_block_bytes || in.left() < size)
      throw snapshot_error("damaged: a block of " + std::to_string(size) + " bytes does not fit into it");
    block.resize(size);
    in.read(block);
    take(block);
  }
}

}  // namespace

/// The file gets its name when it is complete. A killed writer leaves a temporary name, and bytes behind what
/// was written of the previous file.
written_blocks block_file_writer::write(const std::filesystem::path& file, std::size_t num_blocks,
                                        const block_source& block, mode_t mode) {
  require_replaceable(file);
  auto temporary = file.parent_path() / temporary_name(file.filename().string());
  try {
    ::unlink(temporary.c_str());  // it may be a name of the previous file
    auto is_linked = num_blocks_ <= num_blocks && links_previous(temporary);
    std::optional<open_file> out;
    if (is_linked) {
      out.emplace(temporary, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, "write", file);
      if (!is_as_left(out->status()))
        throw snapshot_error("cannot write " + file.string() + ": " + temporary.string() +
                             " was replaced meanwhile by another program");
    } else {
      out.emplace(new_file{temporary, file, mode}, "write");
      begin();
    }
    append(*out, num_blocks, block);
    out->sync();
    auto written = out->status();
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail_on_file("write", file, errno);
    ::unlink(temporary.c_str());  // rename() does nothing if both are names of one file
    sync_folder(file.parent_path());
    previous_ = file;
    device_ = written.st_dev;
    inode_ = written.st_ino;
  } catch (...) {
    ::unlink(temporary.c_str());
    previous_.clear();
    throw;
  }
  return {size_bytes_, sum_->so_far()};
}

/// False: there is none, or it cannot be continued.
bool block_file_writer::links_previous(const std::filesystem::path& to) {
  link_problem_.clear();
  struct stat found {};
  if (previous_.empty() || ::lstat(previous_.c_str(), &found) != 0 || !is_as_left(found)) return false;
  if (::link(previous_.c_str(), to.c_str()) == 0) return true;
  link_problem_ =
      "cannot make the hard link " + to.string() + " of " + previous_.string() + ": " + std::strerror(errno);
  return false;
}

bool block_file_writer::is_as_left(const struct stat& found) const {
  return found.st_dev == device_ && found.st_ino == inode_ &&
         static_cast<std::uint64_t>(found.st_size) == size_bytes_;
}

void block_file_writer::begin() {
  sum_ = std::make_unique<running_checksum>();
  size_bytes_ = 0;
  num_blocks_ = 0;
}

/// Until it returns, the members do not say what is in the file.
void block_file_writer::append(open_file& out, std::size_t num_blocks, const block_source& block) {
  std::vector<std::byte> piece;
  auto flush = [&] {
    out.write_all(piece);
    sum_->add(piece);
    size_bytes_ += piece.size();
    piece.clear();
  };
  if (size_bytes_ == 0) append_to(piece, prefix());
  for (; num_blocks_ < num_blocks; ++num_blocks_) {
    auto bytes = block(num_blocks_);
    if (bytes.empty() || bytes.size() > max_block_bytes)
      throw_invalid("block_file_writer", "1 to " + std::to_string(max_block_bytes) + " bytes a block",
                    std::to_string(bytes.size()));
    auto size = static_cast<std::uint32_t>(bytes.size());
    append_to(piece, std::as_bytes(std::span(&size, 1)));
    append_to(piece, bytes);
    if (piece.size() >= block_buffer_bytes) flush();
  }
  flush();
}

void check_blocks(const std::filesystem::path& file, const written_blocks& expected) {
  regular_file in(file);
  check_beginning(in, expected);
}

void read_blocks(const std::filesystem::path& file, const written_blocks& expected, const block_sink& take) {
  check_blocks(file, expected);
  regular_file in(file);
  give_blocks(in, expected, take);
}

}  // namespace troupe::files
