#include "troupe/wire/frame.hpp"

#include <algorithm>
#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe {
namespace {

constexpr std::array magic = {std::byte{'T'}, std::byte{'R'}, std::byte{'P'}, std::byte{'E'}};
using extension_length = std::uint16_t;

/// The parts of a head before anything is trusted.
struct raw_head {
  std::span<const std::byte> magic;
  std::uint8_t version = 0;
  std::uint8_t kind = 0;
  std::size_t extension_bytes = 0;
  frame_header header;
};

raw_head read_header(byte_reader& reader) {
  raw_head head;
  head.magic = reader.take(magic.size());
  head.version = reader.get<std::uint8_t>();
  head.kind = reader.get<std::uint8_t>();
  head.extension_bytes = reader.get<extension_length>();
  head.header.kind = static_cast<frame_kind>(head.kind);
  head.header.from_rank = reader.get<std::uint32_t>();
  head.header.to_rank = reader.get<std::uint32_t>();
  head.header.generation = reader.get<std::uint64_t>();
  head.header.sequence = reader.get<std::uint64_t>();
  head.header.body_bytes = reader.get<std::uint64_t>();
  return head;
}

bool known(frame_kind kind) { return kind == frame_kind::control || kind == frame_kind::tensor; }

/// What can be said without the key and the rest of the frame.
std::optional<frame_fault> fault_of(const raw_head& raw) {
  if (!std::ranges::equal(raw.magic, magic)) return frame_fault::magic;
  if (raw.version != frame_version) return frame_fault::version;
  if (!known(raw.header.kind)) return frame_fault::kind;
  return std::nullopt;
}

authentication_code code_of(const frame_authenticator& key, frame_kind kind, std::span<const std::byte> head,
                            std::span<const std::byte> covered_body) {
  return kind == frame_kind::control ? key.code(covered_head(head), covered_body)
                                     : key.code(covered_head(head));
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
  write_frame(header, extension, {}, head);
  auto code = code_of(key, header.kind, head, covered_body);
  std::ranges::copy(code, head.end() - authentication_code_bytes);
  return head;
}

void write_frame(const frame_header& header, std::span<const std::byte> extension,
                 const authentication_code& code, std::vector<std::byte>& head) {
  if (extension.size() > std::numeric_limits<extension_length>::max())
    throw_invalid("write_frame", "an extension of at most 65535 bytes", std::to_string(extension.size()));
  head.resize(smallest_frame_head_bytes + extension.size());
  byte_writer writer(head);
  writer.put(magic);
  writer.put(frame_version);
  writer.put(static_cast<std::uint8_t>(header.kind));
  writer.put(static_cast<extension_length>(extension.size()));
  writer.put(header.from_rank);
  writer.put(header.to_rank);
  writer.put(header.generation);
  writer.put(header.sequence);
  writer.put(header.body_bytes);
  writer.put(extension);
  writer.put(code);
}

std::variant<frame_measure, frame_fault> measure_frame(std::span<const std::byte, frame_header_bytes> start) {
  byte_reader reader(start);
  auto raw = read_header(reader);
  if (auto fault = fault_of(raw)) return *fault;
  return frame_measure{raw.header.kind, smallest_frame_head_bytes + raw.extension_bytes,
                       raw.header.body_bytes};
}

std::variant<frame_head, frame_fault> read_frame(std::span<const std::byte> head, std::uint64_t body_bytes,
                                                 authentication_code& code) {
  if (head.size() < smallest_frame_head_bytes) return frame_fault::truncated;
  byte_reader reader(head);
  auto raw = read_header(reader);
  if (auto fault = fault_of(raw)) return *fault;
  if (head.size() != smallest_frame_head_bytes + raw.extension_bytes) return frame_fault::length;
  if (raw.header.body_bytes != body_bytes) return frame_fault::length;
  auto extension = reader.take(raw.extension_bytes);
  std::ranges::copy(reader.take(code.size()), code.begin());
  return frame_head{raw.header, extension};
}

std::variant<frame_head, frame_fault> open_frame(const frame_authenticator& key,
                                                 std::span<const std::byte> head, std::uint64_t body_bytes,
                                                 std::span<const std::byte> covered_body) {
  authentication_code code;
  auto read = read_frame(head, body_bytes, code);
  auto* found = std::get_if<frame_head>(&read);
  if (found && !same_code(code, code_of(key, found->header.kind, head, covered_body)))
    return frame_fault::authentication;
  return read;
}

}  // namespace troupe
