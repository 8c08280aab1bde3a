#include "example_parts.hpp"

#include <algorithm>

namespace troupe::testing {

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (!entry.is_directory()) files.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::ranges::sort(files);
  return files;
}

bool same_tensors(const std::vector<named_tensor>& left, const std::vector<named_tensor>& right) {
  return std::ranges::equal(left, right, [](const named_tensor& a, const named_tensor& b) {
    return a.name == b.name && describe(a.value) == describe(b.value) &&
           std::ranges::equal(a.value.bytes(), b.value.bytes());
  });
}

}  // namespace troupe::testing
