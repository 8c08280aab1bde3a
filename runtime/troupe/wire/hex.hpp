#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::wire {

/// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::span<const std::byte> bytes);

/// The reverse, for digits of either case. None if it is anything else than digits, two a byte.
std::optional<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace troupe::wire
