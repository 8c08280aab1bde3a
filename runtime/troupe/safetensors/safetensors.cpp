#include "troupe/safetensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/known_format.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/safetensors/safetensors_header.hpp"
#include "troupe/tensor/stored_number.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers and elements are copied as they lie in memory");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;

std::string read_header_text(files::regular_file& file) {
  auto size = std::to_string(file.size_bytes());
  if (file.size_bytes() < length_bytes)
    throw bad_input("expected the header's length in 8 bytes, found a file of " + size + " bytes");
  std::array<std::byte, length_bytes> length;
  file.read_all(length);
  auto header_bytes = std::bit_cast<std::uint64_t>(length);
  if (header_bytes > max_header_bytes || header_bytes > file.size_bytes() - length_bytes)
    throw bad_input("expected a header of at most " + std::to_string(max_header_bytes) +
                    " bytes and within the file's " + size + ", found a length of " +
                    std::to_string(header_bytes));
  std::string text(header_bytes, '\0');
  file.read_all(std::as_writable_bytes(std::span(text)));
  return text;
}

/// Refuses bools other than 0 and 1, which programs interpret differently.
void check_booleans(const safetensors::safetensors_entry& entry, std::span<const std::byte> bytes) {
  auto wrong = std::ranges::find_if(bytes, [](std::byte value) { return value > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw bad_input("tensor '" + entry.name + "': expected bytes of 0 or 1 in BOOL" + to_string(entry.extents) +
                  ", found " + std::to_string(std::to_integer<int>(*wrong)) + " at element " +
                  std::to_string(wrong - bytes.begin()));
}

safetensors::safetensors_header read_header(files::regular_file& file) {
  auto text = read_header_text(file);
  return safetensors::parse_safetensors_header(text, file.size_bytes() - length_bytes - text.size());
}

/// Names what cannot be read as `options` say.
void check_numbers(const std::filesystem::path& file,
                   const std::vector<safetensors::safetensors_entry>& entries, other_numbers others) {
  if (others == other_numbers::leave_out) return;
  constexpr std::size_t most_named = 4;
  std::string list;
  std::size_t count = 0;
  bool all_convert = true;
  for (const auto& entry : entries) {
    if (entry.type && (same_dtype(*entry.type) || others == other_numbers::convert)) continue;
    all_convert = all_convert && entry.type;
    if (++count <= most_named)
      list += (list.empty() ? "tensor '" : ", '") + entry.name + "' is " + entry.dtype_name +
              to_string(entry.extents);
  }
  if (count == 0) return;
  if (count > most_named) list += " and " + std::to_string(count - most_named) + " more";
  throw bad_input("cannot read " + file.string() + " as safetensors: " + list +
                  ", expected one of the dtypes F32, BF16, F16, I64, I32, U8 and BOOL. " +
                  (all_convert ? "Convert it with {.others = other_numbers::convert}, l" : "L") +
                  "eave it out with {.others = other_numbers::leave_out}, or save it with another dtype");
}

tensor read_tensor(const files::regular_file& file, std::uint64_t offset,
                   const safetensors::safetensors_entry& entry) {
  auto value = tensor::empty(entry.extents, usual_dtype(*entry.type));
  if (same_dtype(*entry.type)) {
    file.read_at(offset, value.bytes());
    if (entry.type == stored_number::boolean) check_booleans(entry, value.bytes());
    return value;
  }
  std::vector<std::byte> stored(entry.end - entry.begin);
  file.read_at(offset, stored);
  try {
    convert_numbers(stored, *entry.type, value.bytes(), value.dtype());
  } catch (const bad_input& problem) {
    throw bad_input("tensor '" + entry.name + "': " + problem.what());
  }
  return value;
}

safetensors_file read_tensors(files::regular_file& file, safetensors::safetensors_header header,
                              other_numbers others) {
  safetensors_file read{{}, std::move(header.metadata)};
  std::uint64_t begin = file.size_bytes();
  for (const auto& entry : header.tensors) begin = std::min(begin, file.size_bytes() - entry.end);
  for (auto& entry : header.tensors) {
    auto is_ours = entry.type && same_dtype(*entry.type);
    if (is_ours || others == other_numbers::convert)
      read.tensors.push_back({entry.name, read_tensor(file, begin + entry.begin, entry)});
    else
      read.left_out.push_back({entry.name, entry.dtype_name, entry.extents});
  }
  return read;
}

/// Errors of `call` name the file, and its format if that is another one.
template <class Call>
auto reading(const std::filesystem::path& file, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  } catch (const bad_input& problem) {
    if (auto other = files::known_format_of(file))
      throw bad_input("cannot read " + file.string() + " as safetensors: it is " + other->name + ". " +
                      other->what_to_do);
    throw bad_input("cannot read " + file.string() + " as safetensors: " + problem.what() +
                    ". If it was copied or downloaded, do so again, else save it again");
  }
}

}  // namespace

safetensors_file read_safetensors(const std::filesystem::path& file, const safetensors_options& options) {
  auto in = reading(file, [&] { return files::regular_file(file); });
  auto header = reading(file, [&] { return read_header(in); });
  check_numbers(file, header.tensors, options.others);
  return reading(file, [&] { return read_tensors(in, std::move(header), options.others); });
}

void write_safetensors(const std::filesystem::path& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  safetensors::check_tensors("write_safetensors", tensors);
  auto sorted = tensors;
  std::ranges::sort(sorted, {}, [](const named_tensor& one) {
    return std::pair(safetensors::order_in_file(one.value.dtype()), one.name);
  });
  safetensors::safetensors_header header{{}, metadata};
  std::uint64_t end = 0;
  for (auto& [name, value] : sorted) {
    value = value.to({});
    auto begin = end;
    end += value.size_bytes();
    auto type = stored_as(value.dtype());
    header.tensors.push_back({name, safetensors::safetensors_name(type), type, value.shape(), begin, end});
  }
  auto text = to_text(header);
  auto length = std::bit_cast<std::array<std::byte, length_bytes>>(std::uint64_t{text.size()});
  std::vector<std::span<const std::byte>> pieces{length, std::as_bytes(std::span(text))};
  for (const auto& one : sorted) pieces.push_back(one.value.bytes());
  try {
    files::write_durably(file, pieces);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace troupe
