#pragma once
#include <cereal/types/string.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/vector.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "troupe/wire/archive.hpp"

namespace troupe::wire {

/// The Cereal encoding of `value` (see message_output_archive).
template <class T>
std::vector<std::byte> encode(const T& value) {
  std::vector<std::byte> bytes;
  message_output_archive archive(bytes);
  archive(value);
  return bytes;
}

/// The reverse. Throws decode_error for truncated, trailing or impossible bytes, and allocates in proportion
/// to the bytes it was given, whatever lengths they declare. Authenticate before decoding.
template <class T>
T decode(std::span<const std::byte> bytes) {
  try {
    message_input_archive archive(bytes);
    T value{};
    archive(value);
    if (!archive.at_end()) throw decode_error("trailing bytes after a message");
    return value;
  } catch (const decode_error&) {
    throw;
  } catch (const std::exception& failure) {
    throw decode_error(std::string("message cannot be decoded: ") + failure.what());
  }
}

}  // namespace troupe::wire
