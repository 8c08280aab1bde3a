#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where a tensor's bytes lie and its operations run. A machine has one "cpu:0", which stands for all its
/// cores, and a "cuda:N" for each GPU.
struct device {
  enum class kind : std::uint8_t { cpu, cuda };
  kind type = kind::cpu;
  int index = 0;
  bool operator==(const device&) const = default;
};

/// "cpu:0", "cuda:1"
std::string to_string(const device& where);

/// Reads "cpu", "cuda" or either with ":N"; whether the device is there shows when it is used. Throws
/// bad_input, naming the forms, for anything else.
device device_from_string(std::string_view text);

}  // namespace troupe
