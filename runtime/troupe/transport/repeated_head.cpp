#include "troupe/transport/repeated_head.hpp"

#include "troupe/wire/byte_order.hpp"

namespace troupe {
namespace {

constexpr std::uint8_t marker = 0xA1;

}  // namespace

void write_repeated_head(const repeated_head& repeated, std::vector<std::byte>& head) {
  head.resize(repeated_head_bytes);
  byte_writer writer(head);
  writer.put(marker);
  writer.put(repeated.pattern);
  writer.put(repeated.from_rank);
  writer.put(repeated.code);
  writer.put(repeated.step);
  writer.put(repeated.microbatch);
}

std::optional<repeated_head> read_repeated_head(std::span<const std::byte> head) {
  byte_reader reader(head);
  if (head.size() != repeated_head_bytes || reader.get<std::uint8_t>() != marker) return std::nullopt;
  repeated_head read;
  read.pattern = reader.get<std::uint8_t>();
  read.from_rank = reader.get<std::uint16_t>();
  read.code = reader.get<std::uint64_t>();
  read.step = reader.get<std::uint32_t>();
  read.microbatch = reader.get<std::uint32_t>();
  return read;
}

std::uint64_t half_of(const authentication_code& code) { return byte_reader(code).get<std::uint64_t>(); }

}  // namespace troupe
