#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// FNV-1a (Fowler, Noll, Vo; RFC 9923): tells values apart where nobody forges them. Its values name
/// parameters' random streams and appear in files and on the wire: never change them. Each `add` is one
/// step, of a byte as in the RFC, or of a whole number.
template <class Word, Word offset_basis, Word prime>
class basic_fnv1a {
 public:
  constexpr basic_fnv1a& add(Word number) {
    value_ = (value_ ^ number) * prime;
    return *this;
  }
  /// Byte by byte.
  constexpr basic_fnv1a& add(std::string_view text) {
    for (char letter : text) add(Word{static_cast<unsigned char>(letter)});
    return *this;
  }
  constexpr Word value() const { return value_; }

 private:
  Word value_ = offset_basis;
};

using fnv1a = basic_fnv1a<std::uint64_t, 0xcbf29ce484222325, 0x100000001b3>;
using fnv1a_32 = basic_fnv1a<std::uint32_t, 0x811c9dc5, 0x01000193>;

}  // namespace troupe
