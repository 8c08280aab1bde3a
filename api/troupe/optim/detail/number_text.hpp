#pragma once
#include <array>
#include <charconv>
#include <string>

namespace troupe::optim::detail {

/// The shortest text of a number that tells it from all others: "0.001".
inline std::string number_text(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace troupe::optim::detail
