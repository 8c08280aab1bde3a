#include "troupe/data/idx_file.hpp"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// More than zlib can ever make of one byte (1032), so that an absurd header is found before memory is
/// reserved.
constexpr std::uint64_t most_unpacked_per_byte = 1040;
constexpr std::uint8_t unsigned_bytes = 0x08;

/// A file that zlib unpacks, or passes through if it is not gzipped.
class unpacker {
 public:
  explicit unpacker(const std::filesystem::path& file) : name_(file.string()) {
    std::error_code problem;
    size_bytes_ = std::filesystem::file_size(file, problem);
    if (problem) refuse("cannot be read: " + problem.message());
    errno = 0;
    file_.reset(::gzopen(file.c_str(), "rb"));
    if (!file_) refuse(std::string("cannot be opened: ") + std::strerror(errno));
    if (size_bytes_ == 0) refuse("is empty");
    ::gzbuffer(file_.get(), 256 * 1024);
  }

  std::uint64_t size_bytes() const { return size_bytes_; }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw bad_input("'" + name_ + "' " + problem);
  }

  /// How many of the bytes there were; less than asked for at the end of the file.
  std::size_t read(std::span<std::byte> out) {
    constexpr std::size_t most_at_once = 1 << 30;  // gzread counts in int
    std::size_t done = 0;
    while (done < out.size()) {
      auto wanted = static_cast<unsigned>(std::min(out.size() - done, most_at_once));
      auto got = ::gzread(file_.get(), out.data() + done, wanted);
      if (got < 0) refuse("is damaged: " + problem());
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  /// Whether the file has ended. A gzip stream's check sum is verified on the way; a stream cut inside it is
  /// refused.
  bool at_end() {
    std::byte next;
    if (read({&next, 1}) != 0) return false;
    int status = Z_OK;
    ::gzerror(file_.get(), &status);
    if (status == Z_BUF_ERROR) refuse("is truncated: the gzip stream's end is missing");
    return true;
  }

 private:
  struct closer {
    void operator()(gzFile file) const { ::gzclose(file); }
  };

  std::string problem() {
    int status = Z_OK;
    const char* text = ::gzerror(file_.get(), &status);
    return status == Z_ERRNO ? std::strerror(errno) : text;
  }

  std::string name_;
  std::uint64_t size_bytes_ = 0;
  std::unique_ptr<gzFile_s, closer> file_;
};

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

/// Throws if a file of this size cannot hold so many elements, however well they pack.
void check_size(const unpacker& file, const std::vector<std::int64_t>& extents) {
  std::uint64_t total = 1;
  for (auto extent : extents) {
    if (extent == 0) file.refuse("holds nothing: its header says shape " + to_string(shape(extents)));
    total *= static_cast<std::uint64_t>(extent);  // below 2^32 times at most 2^32
    if (total / most_unpacked_per_byte > file.size_bytes())
      file.refuse("is truncated or no IDX file: its header promises more than " + std::to_string(total) +
                  " elements, found a file of " + std::to_string(file.size_bytes()) + " bytes");
  }
}

shape read_header(unpacker& file, int rank) {
  std::array<std::byte, 4> magic{};
  const std::array expected{std::byte{0}, std::byte{0}, std::byte{unsigned_bytes},
                            static_cast<std::byte>(rank)};
  auto found = file.read(magic);
  if (found < magic.size() || magic != expected)
    file.refuse("is no IDX file of unsigned bytes with " + std::to_string(rank) +
                " extents: expected it to begin with " + hex(expected) + ", found " +
                (found == 0 ? "nothing" : hex(std::span(magic).first(found))));
  std::vector<std::byte> numbers(4 * static_cast<std::size_t>(rank));
  if (auto got = file.read(numbers); got < numbers.size())
    file.refuse("is truncated: expected " + std::to_string(numbers.size()) + " bytes of extents, found " +
                std::to_string(got));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    extents[i / 4] = extents[i / 4] << 8 | std::to_integer<std::int64_t>(numbers[i]);
  check_size(file, extents);
  return shape(std::move(extents));
}

/// The whole file's content at once, three times as fast as zlib, which matters when a process that was lost
/// comes back. Undefined if the file is not one gzip stream of exactly this content: reading it piece by
/// piece then says what is wrong, or reads what is no gzip at all.
tensor unpack_at_once(const std::filesystem::path& path, std::int64_t content_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<char> packed(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)));
  file.seekg(0).read(packed.data(), static_cast<std::streamsize>(packed.size()));
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> unpacker(
      ::libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!file || !unpacker) return {};
  auto content = tensor::empty({content_bytes}, dtype::u8);
  std::size_t used = 0;
  // Without room for the number of bytes made, fewer than expected are an error too.
  auto result = ::libdeflate_gzip_decompress_ex(unpacker.get(), packed.data(), packed.size(),
                                                content.bytes().data(), content.size_bytes(), &used, nullptr);
  return result == LIBDEFLATE_SUCCESS && used == packed.size() ? content : tensor();
}

}  // namespace

shape read_idx_header(const std::filesystem::path& path, int rank) {
  unpacker file(path);
  return read_header(file, rank);
}

tensor read_idx(const std::filesystem::path& path, int rank) {
  unpacker file(path);
  auto extents = read_header(file, rank);
  auto header_bytes = std::int64_t{4} + 4 * rank;
  if (auto content = unpack_at_once(path, header_bytes + extents.num_elements()); content.defined())
    return content.rows(header_bytes, extents.num_elements()).reshape(extents);
  auto elements = tensor::empty(extents, dtype::u8);
  auto found = file.read(elements.bytes());
  auto expected = to_string(elements.extents()) + ", " + std::to_string(elements.size_bytes()) + " bytes";
  if (found < elements.size_bytes())
    file.refuse("is truncated: expected " + expected + ", found " + std::to_string(found));
  if (!file.at_end()) file.refuse("is too long: expected " + expected + ", found more");
  return elements;
}

}  // namespace troupe
