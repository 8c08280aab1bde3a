#include "troupe/files/printable_text.hpp"

#include <array>
#include <cstdio>

namespace troupe::files {
namespace {

void append_escaped(std::string& to, unsigned char byte) {
  std::array<char, 8> code{};
  std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned>(byte));
  to += code.data();
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto byte = static_cast<unsigned char>(text[at]);
    auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
    bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (byte < 0x20 || byte == 0x7f || is_c1)
      append_escaped(shown, byte);
    else
      shown += text[at];
    if (is_c1) append_escaped(shown, static_cast<unsigned char>(text[++at]));
  }
  return shown;
}

}  // namespace troupe::files
