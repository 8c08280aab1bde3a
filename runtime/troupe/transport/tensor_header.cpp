#include "troupe/transport/tensor_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::transport {
namespace {

/// The tag, and one byte each for the axis, the role, the dtype, the number of extents, and whether a code
/// and a place follow.
constexpr std::size_t fixed_bytes = 2 * sizeof(std::uint64_t) + 7 * sizeof(std::uint32_t) + 6;
constexpr std::size_t place_bytes = 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

bool known(tensor_role role) {
  return role >= tensor_role::activation && role <= tensor_role::shard_weights && role != unused_tensor_role;
}

bool known(layout::mesh_axis axis) { return std::ranges::count(layout::mesh_axes, axis) > 0; }

void read_tag(wire::byte_reader& reader, tensor_tag& tag) {
  tag.generation = reader.get<std::uint64_t>();
  tag.step = reader.get<std::uint64_t>();
  tag.call = reader.get<std::uint32_t>();
  tag.stage = reader.get<std::uint32_t>();
  tag.microbatch = reader.get<std::uint32_t>();
  tag.port = reader.get<std::uint32_t>();
  tag.replica = reader.get<std::uint32_t>();
  tag.slice = reader.get<std::uint32_t>();
  tag.shard = reader.get<std::uint32_t>();
  tag.axis = static_cast<layout::mesh_axis>(reader.get<std::uint8_t>());
  tag.role = static_cast<tensor_role>(reader.get<std::uint8_t>());
}

/// The encoded layout: the dtype, the number of extents, and the extents.
std::span<const std::byte> take_layout(wire::byte_reader& reader) {
  auto after = reader;
  after.get<std::uint8_t>();
  return reader.take(2 + sizeof(std::uint64_t) * after.get<std::uint8_t>());
}

void read_code(wire::byte_reader& reader, std::optional<messaging::authentication_code>& code) {
  if (reader.get<std::uint8_t>() == 0) return code.reset();
  std::ranges::copy(reader.take(messaging::authentication_code_bytes), code.emplace().begin());
}

bool known(segment_report report) {
  return report >= segment_report::holds_elements && report <= segment_report::freed;
}

/// False for a report that is unknown.
bool read_place(wire::byte_reader& reader, std::optional<shared_place>& place) {
  place.reset();
  auto report = reader.get<std::uint8_t>();
  if (report == 0) return true;
  auto& read = place.emplace();
  read.report = static_cast<segment_report>(report);
  read.segment = reader.get<std::uint64_t>();
  read.offset = reader.get<std::uint64_t>();
  read.segment_bytes = reader.get<std::uint64_t>();
  read.fd = reader.get<std::uint32_t>();
  return known(read.report);
}

bool has_size(const tensor_layout& layout, std::optional<std::uint64_t> body_bytes) {
  std::uint64_t size = 0;
  auto elements = static_cast<std::uint64_t>(layout.extents.num_elements());
  return !__builtin_mul_overflow(elements, size_bytes(layout.type), &size) &&
         size == body_bytes.value_or(size);
}

}  // namespace

std::size_t tensor_header_bytes(const shape& extents, const tensor_header_options& options) {
  auto rank = extents.extents().size();
  if (rank > std::numeric_limits<std::uint8_t>::max())
    throw_invalid("send_tensor", "at most 255 extents", to_string(extents));
  return fixed_bytes + sizeof(std::uint64_t) * rank + (options.body_code ? options.body_code->size() : 0) +
         (options.place ? place_bytes : 0);
}

void write_tensor_header(const tensor_tag& tag, dtype type, const shape& extents,
                         const tensor_header_options& options, wire::byte_writer& writer) {
  const auto& each = extents.extents();
  writer.put(tag.generation);
  writer.put(tag.step);
  writer.put(tag.call);
  writer.put(tag.stage);
  writer.put(tag.microbatch);
  writer.put(tag.port);
  writer.put(tag.replica);
  writer.put(tag.slice);
  writer.put(tag.shard);
  writer.put(static_cast<std::uint8_t>(tag.axis));
  writer.put(static_cast<std::uint8_t>(tag.role));
  writer.put(static_cast<std::uint8_t>(type));
  writer.put(static_cast<std::uint8_t>(each.size()));
  for (auto extent : each) writer.put(static_cast<std::uint64_t>(extent));
  const auto& [body_code, place] = options;
  writer.put(static_cast<std::uint8_t>(body_code.has_value()));
  if (body_code) writer.put(*body_code);
  writer.put(place ? static_cast<std::uint8_t>(place->report) : std::uint8_t{0});
  if (!place) return;
  writer.put(place->segment);
  writer.put(place->offset);
  writer.put(place->segment_bytes);
  writer.put(place->fd);
}

std::span<const std::byte> read_tensor_header(std::span<const std::byte> bytes, tensor_tag& tag,
                                              tensor_header_options& options) {
  wire::byte_reader reader(bytes);
  read_tag(reader, tag);
  auto layout = take_layout(reader);
  read_code(reader, options.body_code);
  bool is_known = read_place(reader, options.place);
  if (!is_known || !reader.ok() || !reader.at_end() || !known(tag.role) || !known(tag.axis)) return {};
  return layout;
}

std::optional<tensor_layout> decode_layout(std::span<const std::byte> bytes,
                                           std::optional<std::uint64_t> body_bytes) {
  try {
    wire::byte_reader reader(bytes);
    tensor_layout layout;
    layout.type = dtype_from_number(reader.get<std::uint8_t>());
    std::vector<std::int64_t> extents(reader.get<std::uint8_t>());
    for (auto& extent : extents) extent = static_cast<std::int64_t>(reader.get<std::uint64_t>());
    layout.extents = shape(std::move(extents));
    if (!reader.ok() || !reader.at_end() || !has_size(layout, body_bytes)) return std::nullopt;
    return layout;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

messaging::authentication_code connection_code(const messaging::frame_authenticator& key,
                                               const receiver_nonce& receiver, std::uint64_t generation,
                                               std::uint32_t from_rank, std::uint32_t to_rank) {
  std::array<std::byte, sizeof receiver + sizeof generation + sizeof from_rank + sizeof to_rank> bytes;
  wire::byte_writer writer(bytes);
  writer.put(receiver);
  writer.put(generation);
  writer.put(from_rank);
  writer.put(to_rank);
  return key.code(bytes);
}

}  // namespace troupe::transport
