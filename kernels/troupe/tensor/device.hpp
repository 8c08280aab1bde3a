#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The device that holds a tensor's memory and runs its operations: "cpu:0" for all cores of the machine,
/// "cuda:N" for each GPU.
struct device {
  enum class kind : std::uint8_t { cpu, cuda };
  kind type = kind::cpu;
  int index = 0;
  bool operator==(const device&) const = default;
};

/// "cpu:0", "cuda:1"
std::string to_string(const device& target);

/// Parses "cpu", "cuda" or either with ":N". Does not check that the device exists. Throws bad_input, naming
/// the accepted forms, for any other text.
device device_from_string(std::string_view text);

}  // namespace troupe
