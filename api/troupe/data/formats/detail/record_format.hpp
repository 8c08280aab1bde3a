#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace troupe::detail {

// The layout of record files, see record_file.hpp.

struct record_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t zero;
};

struct record_index_entry {
  std::uint64_t end;
  std::uint32_t crc;
  std::uint32_t zero;
};

constexpr std::array<char, 8> records_magic{'T', 'R', 'O', 'U', 'P', 'E', 'R', 'C'};
constexpr std::array<char, 8> record_index_magic{'T', 'R', 'O', 'U', 'P', 'E', 'R', 'I'};
constexpr std::uint32_t record_version = 1;
constexpr std::uint64_t record_header_bytes = sizeof(record_header);

std::filesystem::path index_of_records(const std::filesystem::path& file);
/// CRC-32 as zlib computes it.
std::uint32_t record_crc(std::span<const std::byte> bytes);

}  // namespace troupe::detail
