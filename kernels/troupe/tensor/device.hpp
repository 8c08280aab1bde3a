#pragma once
#include <cstdint>
#include <string>

namespace troupe {

/// Where a tensor's bytes lie and its operations run.
struct device {
  enum class kind : std::uint8_t { cpu };
  kind type = kind::cpu;
  int index = 0;
  bool operator==(const device&) const = default;
};

/// "cpu:0"
std::string to_string(const device& where);

}  // namespace troupe
