#pragma once
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

namespace troupe::testing {

/// An IDX file of unsigned bytes in memory: `extents`, then `elements`.
inline std::vector<std::uint8_t> idx_bytes(const std::vector<std::uint32_t>& extents,
                                           const std::vector<std::uint8_t>& elements) {
  std::vector<std::uint8_t> bytes{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (auto extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

inline void write_plain(const std::filesystem::path& file, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_gzipped(const std::filesystem::path& file, const std::vector<std::uint8_t>& bytes) {
  auto* out = ::gzopen(file.c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
}

/// Elements 0, 1, 2, ... modulo `modulus`.
inline std::vector<std::uint8_t> counting(std::size_t count, unsigned modulus = 256) {
  std::vector<std::uint8_t> elements(count);
  for (std::size_t i = 0; i < count; ++i) elements[i] = static_cast<std::uint8_t>(i % modulus);
  return elements;
}

}  // namespace troupe::testing
