#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::messaging {

/// What a frame carries: a Cereal control message, a tensor (its tag in the header extension), or nothing but
/// the notice that the sender has ended all generations before the header's.
enum class frame_kind : std::uint8_t { control = 1, tensor = 2, generation_ended = 3 };

constexpr std::uint8_t frame_version = 19;

/// Fixed fields at the head of every frame, little-endian on the wire. The head is: magic "TRPE", version,
/// kind, the length of the extension (2 bytes), the fields below in their order, the extension, the
/// authentication code.
struct frame_header {
  frame_kind kind = frame_kind::control;
  std::uint32_t from_rank = 0;
  std::uint32_t to_rank = 0;
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;  ///< per sender, receiver and plane: rises by one
  std::uint64_t body_bytes = 0;
  bool operator==(const frame_header&) const = default;
};

constexpr std::size_t frame_header_bytes = 40;
constexpr std::size_t smallest_frame_head_bytes = frame_header_bytes + authentication_code_bytes;

/// Why bytes are no frame for us.
enum class frame_fault : std::uint8_t { truncated, magic, version, kind, length, authentication };

std::string_view to_string(frame_fault fault);

/// A head that was read and found authentic. The extension points into the bytes that were parsed.
struct frame_head {
  frame_header header;
  std::span<const std::byte> extension;
};

/// The head of a frame. Its code covers header, extension and `covered_body`: nothing for a tensor frame, the
/// body of others. Throws std::invalid_argument for an extension of more than 65,535 bytes.
std::vector<std::byte> seal_frame(const frame_authenticator& key, const frame_header& header,
                                  std::span<const std::byte> extension,
                                  std::span<const std::byte> covered_body);
/// The beginning of a head, in a vector that may have room already. What is returned takes the rest: an
/// extension of so many bytes and the code. Throws as seal_frame.
wire::byte_writer begin_frame(const frame_header& header, std::size_t extension_bytes,
                              std::vector<std::byte>& head);

/// Kind and lengths of a frame, from its first frame_header_bytes, which are not authenticated yet.
struct frame_measure {
  frame_kind kind = frame_kind::control;
  std::size_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
};

/// For frames in a stream. Accepts any bytes and never throws for what they contain.
std::variant<frame_measure, frame_fault> measure_frame(std::span<const std::byte, frame_header_bytes> start);

/// Reads and checks a head. `body_bytes` is how many bytes of body arrived, or are announced; `covered_body`
/// as in seal_frame, ignored for a tensor frame. Accepts any bytes and never throws for what they contain.
std::variant<frame_head, frame_fault> open_frame(const frame_authenticator& key,
                                                 std::span<const std::byte> head, std::uint64_t body_bytes,
                                                 std::span<const std::byte> covered_body);

/// The same without checking the code, which `code` gets: why it is no frame for us, or nothing.
std::optional<frame_fault> read_frame(std::span<const std::byte> head, std::uint64_t body_bytes,
                                      frame_head& into, authentication_code& code);
/// What the code of a head covers.
std::span<const std::byte> covered_head(std::span<const std::byte> head);

}  // namespace troupe::messaging
