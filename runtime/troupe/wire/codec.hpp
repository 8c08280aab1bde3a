#pragma once
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/vector.hpp>
#include <cstddef>
#include <istream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <vector>

namespace troupe {

/// Bytes that are no message of the expected type.
class decode_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Cereal's portable binary form of `value`.
template <class T>
std::vector<std::byte> encode(const T& value) {
  std::ostringstream stream(std::ios::binary);
  cereal::PortableBinaryOutputArchive archive(stream);
  archive(value);
  auto view = stream.view();
  auto* first = reinterpret_cast<const std::byte*>(view.data());
  return {first, first + view.size()};
}

/// The reverse. Throws decode_error for truncated, trailing or impossible bytes. Authenticate before decoding.
template <class T>
T decode(std::span<const std::byte> bytes) {
  struct view_buffer : std::streambuf {
    explicit view_buffer(std::span<const std::byte> bytes) {
      auto* first = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
      setg(first, first, first + bytes.size());
    }
    bool at_end() const { return gptr() == egptr(); }
  };
  try {
    view_buffer buffer(bytes);
    std::istream stream(&buffer);
    cereal::PortableBinaryInputArchive archive(stream);
    T value{};
    archive(value);
    if (!buffer.at_end()) throw decode_error("trailing bytes after a message");
    return value;
  } catch (const decode_error&) {
    throw;
  } catch (const std::exception& failure) {
    throw decode_error(std::string("message cannot be decoded: ") + failure.what());
  }
}

}  // namespace troupe
