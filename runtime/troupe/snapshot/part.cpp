#include "troupe/snapshot/part.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/part_header.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::snapshot {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers and elements are copied as they lie in memory");

constexpr std::string_view magic = "TROUPEPT";
constexpr std::uint32_t part_version = 2;
constexpr std::uint32_t oldest_part_version = 1;
constexpr std::size_t prefix_bytes = 32;
constexpr std::size_t alignment_bytes = 64;

std::size_t padded(std::size_t size_bytes) {
  return (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/// The offsets of the pieces of an encoded part.
struct part_layout {
  std::uint32_t version = part_version;
  std::uint64_t header_bytes = 0;
  std::uint64_t elements_bytes = 0;
  std::size_t elements_begin() const { return padded(prefix_bytes + header_bytes); }
  std::size_t checksum_begin() const { return elements_begin() + elements_bytes; }
  std::size_t total_bytes() const { return checksum_begin() + files::checksum_bytes; }
};

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

void check_tensors(const snapshot_part& part) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : part.tensors) {
    if (!value.defined()) throw_invalid("encode_part", "a defined tensor '" + name + "'", "an undefined one");
    if (!names.insert(name).second) throw_invalid("encode_part", "each name once", "'" + name + "' twice");
  }
}

void check_contents(const std::vector<tensor_contents>& contents, const std::vector<named_tensor>& tensors) {
  if (contents.size() != tensors.size())
    throw_invalid("encode_part", "contents of " + std::to_string(tensors.size()) + " tensors",
                  std::to_string(contents.size()));
  for (std::size_t at = 0; at < contents.size(); ++at) {
    const auto& one = contents[at];
    if (auto problem = problem_of(one); !problem.empty())
      throw_invalid("encode_part", "elements of the tensor", problem);
    const auto& [name, value] = tensors[at];
    if (one.name != name || one.type != value.dtype() || stored_shape(one) != value.shape())
      throw_invalid("encode_part", "contents of '" + name + "', " + describe(value),
                    "'" + one.name + "', " + std::string(to_string(one.type)) + to_string(stored_shape(one)));
  }
}

tensor_entry entry_of(const tensor_contents& held) {
  tensor_entry entry{{held.name},
                     static_cast<std::uint8_t>(held.type),
                     {held.whole},
                     {},
                     held.begin,
                     held.end,
                     held.replica.value_or(-1)};
  for (const auto& one : held.boxes) entry.boxes.values.push_back({{one.offset}, {one.extent}});
  return entry;
}

part_header header_of(const snapshot_part& part) {
  auto contents = part.contents.empty() ? whole_contents(part.tensors) : part.contents;
  check_contents(contents, part.tensors);
  part_header header{{part.job_id},        part.step, part.part, part.num_stages, part.generation,
                     {part.numeric_class}, {}};
  for (const auto& held : contents) header.tensors.values.push_back(entry_of(held));
  return header;
}

part_layout layout_of(const snapshot_part& part, std::size_t header_bytes) {
  part_layout layout{.header_bytes = header_bytes};
  for (const auto& named : part.tensors) layout.elements_bytes += padded(named.value.size_bytes());
  return layout;
}

/// Copies `source` to `offset` and zeroes up to the next multiple of 64; returns the offset after that.
std::size_t put_padded(std::span<std::byte> bytes, std::size_t offset, std::span<const std::byte> source) {
  auto end = offset + source.size();
  auto next = padded(end);
  std::ranges::copy(source, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  std::ranges::fill(bytes.subspan(end, next - end), std::byte{0});
  return next;
}

void put_prefix(std::span<std::byte> bytes, const part_layout& layout) {
  std::memcpy(bytes.data(), magic.data(), magic.size());
  put(bytes, 8, layout.version);
  put(bytes, 12, std::uint32_t{0});
  put(bytes, 16, layout.header_bytes);
  put(bytes, 24, layout.elements_bytes);
}

/// Reads the prefix and checks its lengths against the size of the part.
part_layout checked_layout(std::span<const std::byte> bytes, std::uint64_t size_bytes) {
  auto size = std::to_string(size_bytes);
  if (bytes.size() < prefix_bytes || size_bytes < padded(prefix_bytes) + files::checksum_bytes)
    throw files::snapshot_error("truncated: " + size + " bytes are too few for a snapshot part");
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    throw files::snapshot_error("not a snapshot part: it does not begin with TROUPEPT");
  part_layout layout{get<std::uint32_t>(bytes, 8), get<std::uint64_t>(bytes, 16),
                     get<std::uint64_t>(bytes, 24)};
  if (layout.version < oldest_part_version || layout.version > part_version)
    throw files::snapshot_error("format version " + std::to_string(layout.version) +
                                ", but this program reads versions " + std::to_string(oldest_part_version) +
                                " to " + std::to_string(part_version));
  // Each length is checked alone first, so that their sum cannot overflow.
  if (layout.header_bytes > size_bytes || layout.elements_bytes > size_bytes ||
      layout.total_bytes() > size_bytes)
    throw files::snapshot_error("truncated or damaged: its lengths exceed its " + size + " bytes");
  if (layout.total_bytes() < size_bytes)
    throw files::snapshot_error("damaged: it has " + size + " bytes, its lengths say " +
                                std::to_string(layout.total_bytes()));
  if (layout.elements_bytes % alignment_bytes != 0)
    throw files::snapshot_error("damaged: its elements are not padded to " + std::to_string(alignment_bytes) +
                                " bytes");
  return layout;
}

part_layout checked_layout(std::span<const std::byte> bytes) { return checked_layout(bytes, bytes.size()); }

void check_sum(std::span<const std::byte> bytes, const part_layout& layout,
               const std::function<void()>& on_progress) {
  auto expected = bytes.subspan(layout.checksum_begin());
  auto found = files::checksum_of(bytes.first(layout.checksum_begin()), on_progress);
  if (!std::ranges::equal(found, expected))
    throw files::snapshot_error("damaged: checksum " + wire::to_hex(found) + ", expected " +
                                wire::to_hex(expected));
}

tensor_contents contents_from(const tensor_entry& entry) {
  tensor_contents held{
      entry.name.value, dtype_from_number(entry.dtype), entry.whole.values, {}, entry.begin, entry.end, {}};
  for (const auto& one : entry.boxes.values) held.boxes.push_back({one.offset.values, one.extent.values});
  if (entry.replica >= 0) held.replica = entry.replica;
  if (auto problem = problem_of(held); !problem.empty())
    throw files::snapshot_error("damaged header: " + problem);
  return held;
}

tensor_contents contents_from(const whole_tensor_entry& entry) {
  shape extents(entry.extents.values);
  return {entry.name.value,
          dtype_from_number(entry.dtype),
          extents.extents(),
          {whole_box(extents)},
          0,
          extents.num_elements(),
          {}};
}

layout::part_id part_id_from(const layout::part_id& found) { return found; }
layout::part_id part_id_from(std::uint32_t stage) { return {{.stage = static_cast<int>(stage)}}; }

/// Everything but the elements.
template <class Header>
snapshot_part part_from(const Header& header) {
  snapshot_part part{header.job_id.value,
                     header.step,
                     part_id_from(header.part),
                     header.num_stages,
                     header.generation,
                     header.numeric_class.value,
                     {}};
  std::set<std::string> names;
  for (const auto& entry : header.tensors.values) {
    part.contents.push_back(contents_from(entry));
    if (!names.insert(entry.name.value).second)
      throw files::snapshot_error("damaged header: it lists '" + entry.name.value + "' twice");
  }
  return part;
}

snapshot_part read_header(std::span<const std::byte> encoded, const part_layout& layout) {
  auto bytes = encoded.subspan(prefix_bytes, layout.header_bytes);
  try {
    return layout.version == 1 ? part_from(wire::decode<part_header_1>(bytes))
                               : part_from(wire::decode<part_header>(bytes));
  } catch (const wire::decode_error& problem) {
    throw files::snapshot_error(std::string("damaged header: ") + problem.what());
  } catch (const std::invalid_argument& problem) {
    throw files::snapshot_error(std::string("damaged header: ") + problem.what());
  }
}

/// Takes the tensor of `held` from the front of `elements`.
named_tensor take_tensor(const tensor_contents& held, std::span<const std::byte>& elements) {
  auto extents = stored_shape(held);
  if (static_cast<std::uint64_t>(extents.num_elements()) > elements.size() / size_bytes(held.type))
    throw files::snapshot_error("damaged: tensor '" + held.name + "' of shape " + to_string(extents) +
                                " does not fit into the remaining elements");
  auto value = tensor::empty(std::move(extents), held.type);
  auto own_bytes = elements.first(value.size_bytes());
  std::ranges::copy(own_bytes, value.bytes().begin());
  elements = elements.subspan(padded(own_bytes.size()));
  return {held.name, std::move(value)};
}

}  // namespace

tensor encode_part(const snapshot_part& part) {
  check_tensors(part);
  auto header = wire::encode(header_of(part));
  auto layout = layout_of(part, header.size());
  auto encoded = tensor::empty({static_cast<std::int64_t>(layout.total_bytes())}, dtype::u8);
  auto bytes = encoded.bytes();
  put_prefix(bytes, layout);
  auto offset = put_padded(bytes, prefix_bytes, header);
  for (const auto& named : part.tensors) offset = put_padded(bytes, offset, named.value.bytes());
  std::ranges::copy(files::checksum_of(bytes.first(offset)), bytes.subspan(offset).begin());
  return encoded;
}

void check_part_begin(std::span<const std::byte> first, std::uint64_t size_bytes) {
  checked_layout(first, size_bytes);
}

snapshot_part decode_part(std::span<const std::byte> bytes, const std::function<void()>& on_progress) {
  auto layout = checked_layout(bytes);
  check_sum(bytes, layout, on_progress);
  auto part = read_header(bytes, layout);
  auto elements = bytes.subspan(layout.elements_begin(), layout.elements_bytes);
  for (const auto& held : part.contents) part.tensors.push_back(take_tensor(held, elements));
  if (!elements.empty()) throw files::snapshot_error("damaged: elements that belong to no tensor");
  return part;
}

std::vector<tensor_contents> stored_contents(std::span<const std::byte> encoded) {
  return read_header(encoded, checked_layout(encoded)).contents;
}

files::checksum stored_checksum(std::span<const std::byte> encoded) {
  auto layout = checked_layout(encoded);
  files::checksum result;
  std::ranges::copy(encoded.subspan(layout.checksum_begin()), result.begin());
  return result;
}

}  // namespace troupe::snapshot
