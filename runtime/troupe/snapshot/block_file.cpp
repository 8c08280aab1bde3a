#include "troupe/snapshot/block_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/open_file.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::string_view block_magic = "TROUPEBL";
constexpr std::uint32_t block_version = 1;
constexpr std::size_t block_prefix_bytes = 16;
constexpr std::size_t least_bytes = block_prefix_bytes + sizeof(std::uint32_t) + checksum_bytes;
constexpr std::size_t read_bytes = std::size_t{1} << 20;

std::array<std::byte, block_prefix_bytes> prefix() {
  std::array<std::byte, block_prefix_bytes> bytes{};
  std::memcpy(bytes.data(), block_magic.data(), block_magic.size());
  std::memcpy(bytes.data() + block_magic.size(), &block_version, sizeof block_version);
  return bytes;
}

/// Writes to a file and computes the checksum and the size of the written bytes.
struct summed_output {
  open_file& out;
  running_checksum sum;
  std::uint64_t size_bytes = 0;

  void write(std::span<const std::byte> bytes) {
    out.write_all(bytes);
    sum.add(bytes);
    size_bytes += bytes.size();
  }
  void write_size(std::size_t size) {
    auto value = static_cast<std::uint32_t>(size);
    write(std::as_bytes(std::span(&value, 1)));
  }
};

void check_prefix(std::span<const std::byte> found) {
  if (std::memcmp(found.data(), block_magic.data(), block_magic.size()) != 0)
    throw snapshot_error("it does not begin with " + std::string(block_magic));
  std::uint32_t format = 0;
  std::memcpy(&format, found.data() + block_magic.size(), sizeof format);
  if (format != block_version)
    throw snapshot_error("format version " + std::to_string(format) + ", but this program reads version " +
                         std::to_string(block_version));
}

void check_whole(regular_file& in, const written_blocks& expected) {
  if (in.size_bytes() != expected.size_bytes || in.size_bytes() < least_bytes)
    throw snapshot_error("it has " + std::to_string(in.size_bytes()) + " bytes, expected " +
                         std::to_string(std::max<std::uint64_t>(expected.size_bytes, least_bytes)));
  running_checksum sum;
  std::vector<std::byte> piece(read_bytes);
  bool is_first = true;
  for (auto left = in.size_bytes() - checksum_bytes; left > 0;) {
    auto bytes = std::span(piece).first(std::min<std::uint64_t>(left, piece.size()));
    in.read_all(bytes);
    if (std::exchange(is_first, false)) check_prefix(bytes);
    sum.add(bytes);
    left -= bytes.size();
  }
  checksum stored;
  in.read_all(stored);
  auto found = sum.result();
  if (found != stored || stored != expected.sum)
    throw snapshot_error("damaged: checksum " + to_hex(found) + ", expected " + to_hex(expected.sum));
}

/// Call it after check_whole: a block size that does not fit then is a bug of the writer or a forged file.
void give_blocks(regular_file& in, const block_sink& take) {
  std::array<std::byte, block_prefix_bytes> begin{};
  in.read_all(begin);
  auto left = in.size_bytes() - least_bytes;
  std::vector<std::byte> block;
  while (true) {
    std::uint32_t size = 0;
    in.read_all(std::as_writable_bytes(std::span(&size, 1)));
    if (size == 0) break;
    if (size > max_block_bytes || left < size + sizeof size)
      throw snapshot_error("damaged: a block of " + std::to_string(size) + " bytes does not fit into it");
    block.resize(size);
    in.read_all(block);
    left -= size + sizeof size;
    take(block);
  }
  if (left != 0) throw snapshot_error("damaged: " + std::to_string(left) + " bytes after its last block");
}

}  // namespace

written_blocks write_blocks(const std::filesystem::path& file, const block_source& next,
                            const write_hooks& hooks) {
  written_blocks written;
  auto write = [&](open_file& file_out) {
    summed_output out{file_out, {}};
    out.write(prefix());
    for (std::size_t number = 0;; ++number) {
      auto block = next(number);
      if (block.size() > max_block_bytes)
        throw_invalid("write_blocks", "at most " + std::to_string(max_block_bytes) + " bytes a block",
                      std::to_string(block.size()));
      out.write_size(block.size());
      if (block.empty()) break;
      out.write(block);
    }
    written.sum = out.sum.result();
    file_out.write_all(written.sum);
    written.size_bytes = out.size_bytes + written.sum.size();
  };
  write_durably(file, write, hooks);
  return written;
}

void check_blocks(const std::filesystem::path& file, const written_blocks& expected) {
  regular_file in(file);
  check_whole(in, expected);
}

void read_blocks(const std::filesystem::path& file, const written_blocks& expected, const block_sink& take) {
  check_blocks(file, expected);
  regular_file in(file);
  give_blocks(in, take);
}

}  // namespace troupe
