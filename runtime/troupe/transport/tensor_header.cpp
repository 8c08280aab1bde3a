#include "troupe/transport/tensor_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe {
namespace {

/// The tag, and one byte each for the role, the dtype, the number of extents, and whether a code follows.
constexpr std::size_t fixed_bytes = 2 * sizeof(std::uint64_t) + 3 * sizeof(std::uint32_t) + 4;

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

void encode_tensor_header(const tensor_tag& tag, dtype type, const shape& extents,
                          const std::optional<authentication_code>& body_code,
                          std::vector<std::byte>& bytes) {
  const auto& each = extents.extents();
  if (each.size() > std::numeric_limits<std::uint8_t>::max())
    throw_invalid("send_tensor", "at most 255 extents", to_string(extents));
  bytes.resize(fixed_bytes + sizeof(std::uint64_t) * each.size() + (body_code ? body_code->size() : 0));
  byte_writer writer(bytes);
  writer.put(tag.generation);
  writer.put(tag.step);
  writer.put(tag.call);
  writer.put(tag.stage);
  writer.put(tag.microbatch);
  writer.put(static_cast<std::uint8_t>(tag.role));
  writer.put(static_cast<std::uint8_t>(type));
  writer.put(static_cast<std::uint8_t>(each.size()));
  for (auto extent : each) writer.put(static_cast<std::uint64_t>(extent));
  writer.put(static_cast<std::uint8_t>(body_code.has_value()));
  if (body_code) writer.put(*body_code);
}

std::vector<std::byte> encode_tensor_header(const tensor_header& header) {
  std::vector<std::byte> bytes;
  encode_tensor_header(header.tag, header.type, header.extents, header.body_code, bytes);
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

authentication_code connection_code(const frame_authenticator& key, std::uint64_t generation,
                                    std::uint32_t from_rank, std::uint32_t to_rank) {
  std::array<std::byte, sizeof generation + sizeof from_rank + sizeof to_rank> bytes;
  byte_writer writer(bytes);
  writer.put(generation);
  writer.put(from_rank);
  writer.put(to_rank);
  return key.code(bytes);
}

}  // namespace troupe
