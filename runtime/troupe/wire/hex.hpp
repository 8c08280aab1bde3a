#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace troupe
