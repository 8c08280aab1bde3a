#include "troupe/data/formats/idx_file.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "troupe/data/formats/detail/gzip_reader.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/known_format.hpp"

namespace troupe {
namespace {

/// Upper limit of zlib's compression ratio (1032), used to reject absurd headers before memory is allocated.
constexpr std::uint64_t max_unpacked_per_byte = 1040;
constexpr std::uint8_t unsigned_bytes = 0x08;

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (auto byte : bytes) {
    if (!text.empty()) text += ' ';
    text += digits[std::to_integer<unsigned>(byte >> 4)];
    text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

std::string content_of(const std::vector<std::int64_t>& extents, std::uint64_t total) {
  return to_string(shape(extents)) + ", " + std::to_string(total) + " bytes";
}

/// Throws if the file is too small for the elements; a gzipped file, if it is too small at the maximum
/// compression ratio.
void check_size(const detail::gzip_reader& file, const std::vector<std::int64_t>& extents) {
  std::uint64_t total = 1;
  for (auto extent : extents) {
    if (extent == 0) file.fail("holds nothing: its header says shape " + to_string(shape(extents)));
    total *= static_cast<std::uint64_t>(extent);  // below 2^32 times at most 2^32
    if (total / max_unpacked_per_byte > file.size_bytes())
      file.fail("is truncated or no IDX file: its header promises more than " + std::to_string(total) +
                " elements, found a file of " + std::to_string(file.size_bytes()) + " bytes");
  }
  if (file.is_gzipped()) return;
  auto found = file.size_bytes() - (4 + 4 * extents.size());
  if (found < total)
    file.fail("is truncated: expected " + content_of(extents, total) + ", found " + std::to_string(found));
  if (found > total)
    file.fail("is too long: expected " + content_of(extents, total) + ", found " + std::to_string(found));
}

shape read_header(const std::filesystem::path& path, detail::gzip_reader& file, int rank) {
  std::array<std::byte, 4> magic{};
  const std::array expected{std::byte{0}, std::byte{0}, std::byte{unsigned_bytes},
                            static_cast<std::byte>(rank)};
  auto found = file.read(magic);
  if (found < magic.size() || magic != expected) {
    auto other = file.is_gzipped() ? files::known_format_of(magic) : files::known_format_of(path);
    file.fail("is no IDX file of unsigned bytes with " + std::to_string(rank) +
              (rank == 1 ? " extent" : " extents") + ": expected it to begin with " + hex(expected) +
              ", found " + (found == 0 ? "nothing" : hex(std::span(magic).first(found))) +
              (other ? ", as in " + other->name + ". " + other->what_to_do : ""));
  }
  std::vector<std::byte> numbers(4 * static_cast<std::size_t>(rank));
  if (auto got = file.read(numbers); got < numbers.size())
    file.fail("is truncated: expected " + std::to_string(numbers.size()) + " bytes of extents, found " +
              std::to_string(got));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    extents[i / 4] = extents[i / 4] << 8 | std::to_integer<std::int64_t>(numbers[i]);
  check_size(file, extents);
  return shape(std::move(extents));
}

/// Decompresses the whole file with libdeflate, three times as fast as zlib, which shortens the recovery of a
/// lost process. Returns an undefined tensor unless the file is one gzip member with exactly this content;
/// gzip_reader then reads it, or reports the error.
tensor unpack_at_once(const std::filesystem::path& path, std::int64_t content_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<char> packed(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)));
  file.seekg(0).read(packed.data(), static_cast<std::streamsize>(packed.size()));
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> unpacker(
      ::libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!file || !unpacker) return {};
  auto content = tensor::empty({content_bytes}, dtype::u8);
  std::size_t used = 0;
  // Passing no pointer for the actual size makes a shorter result an error too.
  auto result = ::libdeflate_gzip_decompress_ex(unpacker.get(), packed.data(), packed.size(),
                                                content.bytes().data(), content.size_bytes(), &used, nullptr);
  return result == LIBDEFLATE_SUCCESS && used == packed.size() ? content : tensor();
}

}  // namespace

shape read_idx_header(const std::filesystem::path& path, int rank) {
  detail::gzip_reader file(path);
  return read_header(path, file, rank);
}

tensor read_idx(const std::filesystem::path& path, int rank) {
  detail::gzip_reader file(path);
  auto extents = read_header(path, file, rank);
  auto header_bytes = 4 + std::int64_t{4} * rank;
  if (auto content = unpack_at_once(path, header_bytes + extents.num_elements()); content.defined())
    return content.rows(header_bytes, extents.num_elements()).reshape(extents);
  auto elements = tensor::empty(extents, dtype::u8);
  auto found = file.read(elements.bytes());
  auto expected = content_of(extents.extents(), elements.size_bytes());
  if (found < elements.size_bytes())
    file.fail("is truncated: expected " + expected + ", found " + std::to_string(found));
  if (!file.at_end()) file.fail("is too long: expected " + expected + ", found more");
  return elements;
}

}  // namespace troupe
