#include "troupe/data/formats/npy_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "troupe/data/formats/detail/npy_header.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/known_format.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t version_1_bytes = magic.size() + 2 + 2;  ///< with the version and the header's length
constexpr std::size_t alignment_bytes = 64;
/// Maximum header size: far more than dozens of extents need.
constexpr std::size_t max_header_bytes = 0xffff;
constexpr std::size_t elements_at_once = std::size_t{1} << 20;  ///< that are read, then converted

/// `size` bytes of the file as text. Throws bad_input if it has fewer.
std::string take(files::regular_file& input, std::uint64_t& left, std::size_t size,
                 const std::string& message) {
  if (left < size)
    throw bad_input("it is truncated: expected " + std::to_string(size) + " bytes of " + message +
                    ", found " + std::to_string(left));
  std::string text(size, '\0');
  input.read_all(std::as_writable_bytes(std::span(text)));
  left -= size;
  return text;
}

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (auto at = bytes.size(); at > 0; --at) value = value << 8 | static_cast<unsigned char>(bytes[at - 1]);
  return value;
}

detail::npy_header read_header(files::regular_file& input, std::uint64_t& left) {
  auto begin = take(input, left, magic.size() + 2, "magic and version");
  if (!begin.starts_with(magic)) {
    auto other = files::known_format_of(std::as_bytes(std::span(begin)));
    throw bad_input(
        "it does not begin as NumPy's .npy files do" +
        (other ? ": it is " + other->name + ". " + other->what_to_do : ". Save the array with numpy.save"));
  }
  auto major = static_cast<unsigned char>(begin[magic.size()]);
  auto minor = static_cast<unsigned char>(begin[magic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    throw bad_input("expected format version 1.0, 2.0 or 3.0, found " + std::to_string(major) + "." +
                    std::to_string(minor));
  auto size = little_endian(take(input, left, major == 1 ? 2 : 4, "the header's length"));
  if (size > max_header_bytes)
    throw bad_input("expected a header of at most " + std::to_string(max_header_bytes) + " bytes, found " +
                    std::to_string(size));
  return detail::parse_npy_header(take(input, left, size, "header"));
}

/// Checks the size against the rest of the file.
void check_size_of(const detail::npy_header& header, std::uint64_t left) {
  std::uint64_t expected = 0;
  auto too_many = __builtin_mul_overflow(static_cast<std::uint64_t>(header.extents.num_elements()),
                                         size_bytes(header.type), &expected);
  if (too_many || expected != left)
    throw bad_input(std::string(too_many || expected > left ? "it is truncated" : "it is too long") +
                    ": expected the elements of " + to_string(header.type) + to_string(header.extents) +
                    ", found " + std::to_string(left) + " bytes");
}

/// Calls `read` with the file, at its first element, and its layout. Errors name the file.
template <class Read>
auto with_npy(const std::filesystem::path& file, Read read) {
  try {
    files::regular_file in(file);
    auto left = in.size_bytes();
    detail::npy_layout layout{read_header(in, left), 0, in.size_bytes()};
    layout.offset = in.size_bytes() - left;
    check_size_of(layout.header, left);
    return read(in, layout);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  } catch (const bad_input& problem) {
    throw bad_input("cannot read " + file.string() + ": " + problem.what());
  }
}

}  // namespace

detail::npy_layout detail::read_npy_layout(const std::filesystem::path& file) {
  return with_npy(file, [](files::regular_file&, const detail::npy_layout& layout) { return layout; });
}

tensor read_npy(const std::filesystem::path& file, const npy_options& options) {
  return with_npy(file, [&](files::regular_file& input, const detail::npy_layout& layout) {
    const auto& [type, extents] = layout.header;
    auto array = tensor::empty(extents, npy_dtype(layout.header, options.as, "as"));
    auto size = size_bytes(type), converted = size_bytes(array.dtype());
    std::vector<std::byte> stored(std::min<std::size_t>(elements_at_once, array.bytes().size() / converted) *
                                  size);
    for (auto rest = array.bytes(); !rest.empty();) {
      auto count = std::min(elements_at_once, rest.size() / converted);
      auto from = std::span(stored).first(count * size);
      input.read_all(from);
      auto first = static_cast<std::int64_t>((array.bytes().size() - rest.size()) / converted);
      convert_numbers(from, type, rest.first(count * converted), array.dtype(), first);
      rest = rest.subspan(count * converted);
    }
    return array;
  });
}

void write_npy(const std::filesystem::path& file, const tensor& array) {
  if (!array.defined()) throw_invalid("write_npy", "a defined array", "an undefined one");
  auto here = array.to({});
  auto text = to_text(detail::npy_header{stored_as(here.dtype()), here.shape()});
  auto total = (version_1_bytes + text.size() + 1 + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  text.resize(total - version_1_bytes, ' ');
  text.back() = '\n';
  if (text.size() > max_header_bytes)
    throw_invalid("write_npy", "fewer extents", std::to_string(here.shape().rank()));
  auto begin = std::string(magic) + '\1' + '\0' + static_cast<char>(text.size() & 0xff) +
               static_cast<char>(text.size() >> 8) + text;
  std::array<std::span<const std::byte>, 2> pieces{std::as_bytes(std::span(begin)), here.bytes()};
  try {
    files::write_durably(file, pieces);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace troupe
