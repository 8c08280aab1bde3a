#include "troupe/tensor/device.hpp"

#include <charconv>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string to_string(const device& target) {
  return (target.type == device::kind::cpu ? "cpu:" : "cuda:") + std::to_string(target.index);
}

device device_from_string(std::string_view text) {
  auto colon = text.find(':');
  auto name = text.substr(0, colon);
  device result;
  bool is_good = name == "cpu" || name == "cuda";
  if (name == "cuda") result.type = device::kind::cuda;
  if (colon != std::string_view::npos) {
    auto number = text.substr(colon + 1);
    auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), result.index);
    is_good &= problem == std::errc() && end == number.data() + number.size() && result.index >= 0;
  }
  is_good &= result.type == device::kind::cuda || result.index == 0;
  if (!is_good)
    throw bad_input("expected a device such as cpu, cuda or cuda:1, got '" + std::string(text) + "'");
  return result;
}

}  // namespace troupe
