#include "troupe/transport/tensor_header.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe {
namespace {

bool known(tensor_role role) { return role >= tensor_role::activation && role <= tensor_role::share; }

tensor_tag read_tag(byte_reader& reader) {
  tensor_tag tag;
  tag.generation = reader.get<std::uint64_t>();
  tag.step = reader.get<std::uint64_t>();
  tag.call = reader.get<std::uint32_t>();
  tag.stage = reader.get<std::uint32_t>();
  tag.microbatch = reader.get<std::uint32_t>();
  tag.role = static_cast<tensor_role>(reader.get<std::uint8_t>());
  return tag;
}

/// Throws std::invalid_argument for extents or a dtype that cannot be.
void read_layout(byte_reader& reader, tensor_header& header) {
  header.type = dtype_from_number(reader.get<std::uint8_t>());
  std::vector<std::int64_t> extents(reader.get<std::uint8_t>());
  for (auto& extent : extents) extent = static_cast<std::int64_t>(reader.get<std::uint64_t>());
  header.extents = shape(std::move(extents));
}

std::optional<authentication_code> read_code(byte_reader& reader) {
  if (reader.get<std::uint8_t>() == 0) return std::nullopt;
  authentication_code code{};
  std::ranges::copy(reader.take(code.size()), code.begin());
  return code;
}

bool has_size(const tensor_header& header, std::uint64_t body_bytes) {
  std::uint64_t size = 0;
  auto elements = static_cast<std::uint64_t>(header.extents.num_elements());
  return !__builtin_mul_overflow(elements, size_bytes(header.type), &size) && size == body_bytes;
}

}  // namespace

std::vector<std::byte> encode_tensor_header(const tensor_header& header) {
  const auto& extents = header.extents.extents();
  if (extents.size() > std::numeric_limits<std::uint8_t>::max())
    throw_invalid("send_tensor", "at most 255 extents", to_string(header.extents));
  std::vector<std::byte> bytes;
  bytes.reserve(48 + 8 * extents.size());
  byte_writer writer(bytes);
  writer.put(header.tag.generation);
  writer.put(header.tag.step);
  writer.put(header.tag.call);
  writer.put(header.tag.stage);
  writer.put(header.tag.microbatch);
  writer.put(static_cast<std::uint8_t>(header.tag.role));
  writer.put(static_cast<std::uint8_t>(header.type));
  writer.put(static_cast<std::uint8_t>(extents.size()));
  for (auto extent : extents) writer.put(static_cast<std::uint64_t>(extent));
  writer.put(static_cast<std::uint8_t>(header.body_code.has_value()));
  if (header.body_code) writer.put(*header.body_code);
  return bytes;
}

std::optional<tensor_header> decode_tensor_header(std::span<const std::byte> bytes,
                                                  std::uint64_t body_bytes) {
  try {
    byte_reader reader(bytes);
    tensor_header header;
    header.tag = read_tag(reader);
    read_layout(reader, header);
    header.body_code = read_code(reader);
    if (!reader.ok() || !reader.at_end() || !known(header.tag.role) || !has_size(header, body_bytes))
      return std::nullopt;
    return header;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace troupe
