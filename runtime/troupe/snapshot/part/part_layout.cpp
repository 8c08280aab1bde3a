#include "troupe/snapshot/part/part_layout.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "troupe/files/snapshot_error.hpp"

namespace troupe::snapshot {
namespace {

constexpr std::string_view magic = "TROUPEPT";
constexpr std::uint32_t oldest_part_version = 1;
/// Of a header or of all checksums, which are held in memory: a file with false lengths must not take more.
constexpr std::uint64_t max_held_bytes = std::uint64_t{256} << 20;

template <class Number>
void put(std::span<std::byte> bytes, std::size_t offset, Number value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class Number>
Number get(std::span<const std::byte> bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::uint64_t part_layout::elements_begin() const { return padded_in_part(part_prefix_bytes + header_bytes); }

std::uint64_t part_layout::num_blocks() const {
  return version < first_version_with_blocks ? 0 : (elements_bytes + part_block_bytes - 1) / part_block_bytes;
}

void write_prefix(std::span<std::byte> part, const part_layout& layout) {
  std::memcpy(part.data(), magic.data(), magic.size());
  put(part, 8, layout.version);
  put(part, 12, std::uint32_t{0});
  put(part, 16, layout.header_bytes);
  put(part, 24, layout.elements_bytes);
}

part_layout read_prefix(std::span<const std::byte> first, std::uint64_t size_bytes) {
  auto size = std::to_string(size_bytes);
  if (first.size() < part_prefix_bytes ||
      size_bytes < padded_in_part(part_prefix_bytes) + files::checksum_bytes)
    throw files::snapshot_error("truncated: " + size + " bytes are too few for a snapshot part");
  if (std::memcmp(first.data(), magic.data(), magic.size()) != 0)
    throw files::snapshot_error("not a snapshot part: it does not begin with TROUPEPT");
  part_layout layout{get<std::uint32_t>(first, 8), get<std::uint64_t>(first, 16),
                     get<std::uint64_t>(first, 24)};
  if (layout.version < oldest_part_version || layout.version > newest_part_version)
    throw files::snapshot_error("format version " + std::to_string(layout.version) +
                                ", but this program reads versions " + std::to_string(oldest_part_version) +
                                " to " + std::to_string(newest_part_version));
  // Each length is checked alone first, so that their sum cannot overflow.
  if (layout.header_bytes > size_bytes || layout.elements_bytes > size_bytes ||
      layout.total_bytes() > size_bytes)
    throw files::snapshot_error("truncated or damaged: its lengths exceed its " + size + " bytes");
  if (layout.total_bytes() < size_bytes)
    throw files::snapshot_error("damaged: it has " + size + " bytes, its lengths say " +
                                std::to_string(layout.total_bytes()));
  if (layout.elements_bytes % part_alignment_bytes != 0)
    throw files::snapshot_error("damaged: its elements are not padded to " +
                                std::to_string(part_alignment_bytes) + " bytes");
  if (auto held = std::max(layout.header_bytes, layout.checksum_begin() - layout.table_begin());
      held > max_held_bytes)
    throw files::snapshot_error("damaged: its header or its checksums have " + std::to_string(held) +
                                " bytes, but at most " + std::to_string(max_held_bytes) + " are possible");
  return layout;
}

void write_checksums(std::span<std::byte> part, const part_layout& layout) {
  auto table = part.subspan(layout.table_begin(), layout.checksum_begin() - layout.table_begin());
  for (std::uint64_t block = 0; block < layout.num_blocks(); ++block) {
    auto first = block * part_block_bytes;
    auto size = std::min(part_block_bytes, layout.elements_bytes - first);
    std::ranges::copy(files::checksum_of(part.subspan(layout.elements_begin() + first, size)),
                      table.begin() + static_cast<std::ptrdiff_t>(block * files::checksum_bytes));
  }
  files::running_checksum all;
  bool has_blocks = layout.version >= first_version_with_blocks;
  all.add(part.first(has_blocks ? layout.elements_begin() : layout.checksum_begin()));
  if (has_blocks) all.add(table);
  std::ranges::copy(all.result(), part.begin() + static_cast<std::ptrdiff_t>(layout.checksum_begin()));
}

}  // namespace troupe::snapshot
