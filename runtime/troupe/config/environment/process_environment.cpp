#include <cstdlib>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe {

environment_reader process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return std::nullopt;
    return value;
  };
}

}  // namespace troupe
