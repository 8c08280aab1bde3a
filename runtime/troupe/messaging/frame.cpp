#include "troupe/messaging/frame.hpp"

#include <algorithm>
#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::messaging {
namespace {

constexpr std::array magic = {std::byte{'T'}, std::byte{'R'}, std::byte{'P'}, std::byte{'E'}};
using extension_length = std::uint16_t;

bool known(frame_kind kind) { return kind >= frame_kind::control && kind <= frame_kind::generation_ended; }

/// The fixed fields. Returns what can be said without the key and the rest of the frame.
std::optional<frame_fault> read_header(wire::byte_reader& reader, frame_header& header,
                                       std::size_t& extension_bytes) {
  auto start = reader.take(magic.size());
  auto version = reader.get<std::uint8_t>();
  header.kind = static_cast<frame_kind>(reader.get<std::uint8_t>());
  extension_bytes = reader.get<extension_length>();
  header.from_rank = reader.get<std::uint32_t>();
  header.to_rank = reader.get<std::uint32_t>();
  header.generation = reader.get<std::uint64_t>();
  header.sequence = reader.get<std::uint64_t>();
  header.body_bytes = reader.get<std::uint64_t>();
  if (!std::ranges::equal(start, magic)) return frame_fault::magic;
  if (version != frame_version) return frame_fault::version;
  if (!known(header.kind)) return frame_fault::kind;
  return std::nullopt;
}

authentication_code code_of(const frame_authenticator& key, frame_kind kind, std::span<const std::byte> head,
                            std::span<const std::byte> covered_body) {
  return kind == frame_kind::tensor ? key.code(covered_head(head))
                                    : key.code(covered_head(head), covered_body);
}

}  // namespace

std::string_view to_string(frame_fault fault) {
  constexpr std::array<std::string_view, 6> names = {"truncated",    "not a frame of ours", "another version",
                                                     "unknown kind", "wrong length",        "not authentic"};
  return names[static_cast<std::size_t>(fault)];
}

std::span<const std::byte> covered_head(std::span<const std::byte> head) {
  return head.first(head.size() - authentication_code_bytes);
}

std::vector<std::byte> seal_frame(const frame_authenticator& key, const frame_header& header,
                                  std::span<const std::byte> extension,
                                  std::span<const std::byte> covered_body) {
  std::vector<std::byte> head;
  auto rest = begin_frame(header, extension.size(), head);
  rest.put(extension);
  rest.put(code_of(key, header.kind, head, covered_body));
  return head;
}

wire::byte_writer begin_frame(const frame_header& header, std::size_t extension_bytes,
                              std::vector<std::byte>& head) {
  if (extension_bytes > std::numeric_limits<extension_length>::max())
    throw_invalid("begin_frame", "an extension of at most 65535 bytes", std::to_string(extension_bytes));
  head.resize(smallest_frame_head_bytes + extension_bytes);
  wire::byte_writer writer(head);
  writer.put(magic);
  writer.put(frame_version);
  writer.put(static_cast<std::uint8_t>(header.kind));
  writer.put(static_cast<extension_length>(extension_bytes));
  writer.put(header.from_rank);
  writer.put(header.to_rank);
  writer.put(header.generation);
  writer.put(header.sequence);
  writer.put(header.body_bytes);
  return writer;
}

std::variant<frame_measure, frame_fault> measure_frame(std::span<const std::byte, frame_header_bytes> start) {
  wire::byte_reader reader(start);
  frame_header header;
  std::size_t extension_bytes = 0;
  if (auto fault = read_header(reader, header, extension_bytes)) return *fault;
  return frame_measure{header.kind, smallest_frame_head_bytes + extension_bytes, header.body_bytes};
}

std::optional<frame_fault> read_frame(std::span<const std::byte> head, std::uint64_t body_bytes,
                                      frame_head& into, authentication_code& code) {
  if (head.size() < smallest_frame_head_bytes) return frame_fault::truncated;
  wire::byte_reader reader(head);
  std::size_t extension_bytes = 0;
  if (auto fault = read_header(reader, into.header, extension_bytes)) return fault;
  if (head.size() != smallest_frame_head_bytes + extension_bytes) return frame_fault::length;
  if (into.header.body_bytes != body_bytes) return frame_fault::length;
  into.extension = reader.take(extension_bytes);
  std::ranges::copy(reader.take(code.size()), code.begin());
  return std::nullopt;
}

std::variant<frame_head, frame_fault> open_frame(const frame_authenticator& key,
                                                 std::span<const std::byte> head, std::uint64_t body_bytes,
                                                 std::span<const std::byte> covered_body) {
  frame_head opened;
  authentication_code code;
  if (auto fault = read_frame(head, body_bytes, opened, code)) return *fault;
  if (!same_code(code, code_of(key, opened.header.kind, head, covered_body)))
    return frame_fault::authentication;
  return opened;
}

}  // namespace troupe::messaging
