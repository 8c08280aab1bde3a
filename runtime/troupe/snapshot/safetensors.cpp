#include "troupe/snapshot/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <span>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/durable_file.hpp"
#include "troupe/snapshot/open_file.hpp"
#include "troupe/snapshot/safetensors_header.hpp"
#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers and elements are copied as they lie in memory");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;

std::string read_header_text(regular_file& in) {
  auto size = std::to_string(in.size_bytes());
  if (in.size_bytes() < length_bytes)
    throw bad_input("expected the header's length in 8 bytes, found a file of " + size + " bytes");
  std::array<std::byte, length_bytes> length;
  in.read_all(length);
  auto header_bytes = std::bit_cast<std::uint64_t>(length);
  if (header_bytes > max_header_bytes || header_bytes > in.size_bytes() - length_bytes)
    throw bad_input("expected a header of at most " + std::to_string(max_header_bytes) +
                    " bytes and within the file's " + size + ", found a length of " +
                    std::to_string(header_bytes));
  std::string text(header_bytes, '\0');
  in.read_all(std::as_writable_bytes(std::span(text)));
  return text;
}

/// Refuses bools other than 0 and 1, which programs interpret differently.
void check_booleans(const safetensors_entry& entry, std::span<const std::byte> bytes) {
  auto wrong = std::ranges::find_if(bytes, [](std::byte value) { return value > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw bad_input("tensor '" + entry.name + "': expected bytes of 0 or 1 in BOOL" + to_string(entry.extents) +
                  ", found " + std::to_string(std::to_integer<int>(*wrong)) + " at element " +
                  std::to_string(wrong - bytes.begin()));
}

safetensors_file read(const std::filesystem::path& path) {
  regular_file in(path);
  auto text = read_header_text(in);
  auto header = parse_safetensors_header(text, in.size_bytes() - length_bytes - text.size());
  safetensors_file file{{}, std::move(header.metadata)};
  for (auto& entry : header.tensors) {
    auto value = tensor::empty(entry.extents, entry.type);
    in.read_all(value.bytes());
    if (entry.type == dtype::boolean) check_booleans(entry, value.bytes());
    file.tensors.push_back({std::move(entry.name), std::move(value)});
  }
  return file;
}

void check_tensors(const std::vector<named_tensor>& tensors) {
  constexpr const char* operation = "write_safetensors";
  std::set<std::string_view> names;
  for (const auto& [name, value] : tensors) {
    if (!value.defined()) throw_invalid(operation, "a defined tensor '" + name + "'", "an undefined one");
    if (name == "__metadata__") throw_invalid(operation, "another name than the format's own", name);
    if (!names.insert(name).second) throw_invalid(operation, "each name once", "'" + name + "' twice");
  }
}

}  // namespace

safetensors_file read_safetensors(const std::filesystem::path& file) {
  try {
    return read(file);
  } catch (const snapshot_error& problem) {
    throw bad_input(problem.what());
  } catch (const bad_input& problem) {
    throw bad_input("cannot read " + file.string() + " as safetensors: " + problem.what() +
                    ". If it was copied or downloaded, do so again, else save it again");
  }
}

void write_safetensors(const std::filesystem::path& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_tensors(tensors);
  auto sorted = tensors;
  std::ranges::sort(
      sorted, {}, [](const named_tensor& of) { return std::pair(order_in_file(of.value.dtype()), of.name); });
  safetensors_header header{{}, metadata};
  std::uint64_t end = 0;
  for (auto& [name, value] : sorted) {
    value = value.to({});
    auto begin = end;
    end += value.size_bytes();
    header.tensors.push_back({name, value.dtype(), value.shape(), begin, end});
  }
  auto text = to_text(header);
  auto length = std::bit_cast<std::array<std::byte, length_bytes>>(std::uint64_t{text.size()});
  std::vector<std::span<const std::byte>> pieces{length, std::as_bytes(std::span(text))};
  for (const auto& of : sorted) pieces.push_back(of.value.bytes());
  try {
    write_durably(file, pieces);
  } catch (const snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace troupe
