#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe::testing {

/// What is in a file; empty if there is none.
inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace troupe::testing
