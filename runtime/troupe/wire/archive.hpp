#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cereal/cereal.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace troupe::wire {

/// Bytes that are no message of the expected type.
class decode_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A Cereal archive that appends to `target`: numbers little-endian, containers as a 64-bit count and their
/// elements, nothing else. Messages are small and many, so there is no stream in between.
class message_output_archive
    : public cereal::OutputArchive<message_output_archive, cereal::AllowEmptyClassElision> {
 public:
  explicit message_output_archive(std::vector<std::byte>& target) : OutputArchive(this), target_(target) {}

  template <class Number>
  void write(Number number) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(Number)>>(number);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
    append(bytes);
  }
  template <class Number>
  void write(std::span<const Number> numbers) {
    if constexpr (std::endian::native == std::endian::little || sizeof(Number) == 1) {
      append(std::as_bytes(numbers));
    } else {
      for (auto number : numbers) write(number);
    }
  }

 private:
  /// (GCC 12 warns falsely about vector::insert here.)
  void append(std::span<const std::byte> bytes) {
    auto end = target_.size();
    target_.resize(end + bytes.size());
    std::ranges::copy(bytes, target_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  std::vector<std::byte>& target_;
};

/// The reverse, for untrusted bytes: never reads past the end, and refuses a declared element
/// count above the number of bytes left *before* a container allocates for it. (Every element takes at
/// least a byte; containers of empty classes are not supported.) So decoding n bytes never
/// allocates more than n times the size of the largest element type. Throws decode_error.
class message_input_archive
    : public cereal::InputArchive<message_input_archive, cereal::AllowEmptyClassElision> {
 public:
  explicit message_input_archive(std::span<const std::byte> bytes) : InputArchive(this), rest_(bytes) {}

  template <class Number>
  Number read() {
    std::array<std::byte, sizeof(Number)> bytes;
    if (rest_.size() < bytes.size()) throw decode_error("a message ends in the middle of a field");
    std::ranges::copy(rest_.first(bytes.size()), bytes.begin());
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
    rest_ = rest_.subspan(bytes.size());
    return std::bit_cast<Number>(bytes);
  }
  template <class Number>
  void read(std::span<Number> numbers) {
    if constexpr (std::endian::native == std::endian::little || sizeof(Number) == 1) {
      if (rest_.size() < numbers.size_bytes())
        throw decode_error("a message ends in the middle of its elements");
      std::ranges::copy(rest_.first(numbers.size_bytes()), std::as_writable_bytes(numbers).begin());
      rest_ = rest_.subspan(numbers.size_bytes());
    } else {
      for (auto& number : numbers) number = read<Number>();
    }
  }
  std::uint64_t read_count() {
    auto count = read<std::uint64_t>();
    if (count > rest_.size()) throw decode_error("a message declares more elements than it has bytes");
    return count;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

template <class Number>
concept message_number = std::is_arithmetic_v<Number> && !std::is_same_v<Number, long double>;

template <message_number Number>
void CEREAL_SAVE_FUNCTION_NAME(message_output_archive& archive, const Number& number) {
  archive.write(number);
}

template <message_number Number>
void CEREAL_LOAD_FUNCTION_NAME(message_input_archive& archive, Number& number) {
  if constexpr (std::is_same_v<Number, bool>) {
    auto byte = archive.read<std::uint8_t>();
    if (byte > 1) throw decode_error("a message holds a truth value that is neither 0 nor 1");
    number = byte == 1;
  } else {
    number = archive.read<Number>();
  }
}

/// The elements of a string or of a vector of numbers in one go.
template <class Pointer>
void CEREAL_SAVE_FUNCTION_NAME(message_output_archive& archive, const cereal::BinaryData<Pointer>& block) {
  using number = std::remove_cv_t<std::remove_pointer_t<std::remove_reference_t<Pointer>>>;
  archive.write(std::span(static_cast<const number*>(block.data), block.size / sizeof(number)));
}

template <class Pointer>
void CEREAL_LOAD_FUNCTION_NAME(message_input_archive& archive, cereal::BinaryData<Pointer>& block) {
  using number = std::remove_pointer_t<std::remove_reference_t<Pointer>>;
  archive.read(std::span(static_cast<number*>(block.data), block.size / sizeof(number)));
}

template <class Size>
void CEREAL_SAVE_FUNCTION_NAME(message_output_archive& archive, const cereal::SizeTag<Size>& count) {
  archive.write(static_cast<std::uint64_t>(count.size));
}

template <class Size>
void CEREAL_LOAD_FUNCTION_NAME(message_input_archive& archive, cereal::SizeTag<Size>& count) {
  count.size = static_cast<std::remove_reference_t<Size>>(archive.read_count());
}

template <class Archive, class T>
requires std::is_same_v<Archive, message_output_archive> || std::is_same_v<Archive, message_input_archive>
void CEREAL_SERIALIZE_FUNCTION_NAME(Archive& archive, cereal::NameValuePair<T>& pair) { archive(pair.value); }

}  // namespace troupe::wire

CEREAL_REGISTER_ARCHIVE(troupe::wire::message_output_archive)
CEREAL_REGISTER_ARCHIVE(troupe::wire::message_input_archive)
CEREAL_SETUP_ARCHIVE_TRAITS(troupe::wire::message_input_archive, troupe::wire::message_output_archive)
