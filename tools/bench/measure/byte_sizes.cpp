#include "bench/measure/byte_sizes.hpp"

#include <charconv>
#include <sstream>

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

std::int64_t size_from(const std::string& text) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value < 1 || value > (most_bytes >> shift))
    throw bad_input("--bytes " + text + ": expected 1 to 1G, such as 8, 4K or 256M");
  return value << shift;
}

}  // namespace

std::vector<std::int64_t> byte_sizes_from(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    auto colon = part.find(':');
    auto first = size_from(part.substr(0, colon));
    auto last = colon == std::string::npos ? first : size_from(part.substr(colon + 1));
    if (last < first)
      throw bad_input("--bytes " + part +
                      ": expected a range that ends with its larger size, such as 8:256M");
    for (auto size = first; size < last; size *= 8) sizes.push_back(size);
    sizes.push_back(last);
  }
  if (sizes.empty()) throw bad_input("--bytes: expected a size, such as 8, 4K or 8:256M");
  return sizes;
}

}  // namespace troupe::bench
