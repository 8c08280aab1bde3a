#include "troupe/snapshot/folder_layout.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {
namespace {

constexpr std::string_view step_prefix = "step-";

std::string with_zeros(std::uint64_t number, std::size_t width) {
  auto digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

}  // namespace

std::string step_folder_name(std::uint64_t step) { return std::string(step_prefix) + with_zeros(step, 12); }

std::optional<std::uint64_t> step_from_folder_name(std::string_view name) {
  if (!name.starts_with(step_prefix)) return {};
  auto digits = name.substr(step_prefix.size());
  std::uint64_t step = 0;
  auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (status != std::errc() || step_folder_name(step) != name) return {};
  return step;
}

std::string part_file_name(std::uint32_t stage) { return "stage-" + with_zeros(stage, 4) + ".part"; }

std::vector<std::uint64_t> steps_in(const std::filesystem::path& root) {
  std::vector<std::uint64_t> steps;
  for (const auto& name : names_in(root))
    if (auto step = step_from_folder_name(name)) steps.push_back(*step);
  std::ranges::sort(steps, std::greater());
  return steps;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder, problem), end;
  for (; !problem && entry != end; entry.increment(problem))
    names.push_back(entry->path().filename().string());
  if (problem && problem != std::errc::no_such_file_or_directory)
    throw snapshot_error("cannot read the folder " + folder.string() + ": " + problem.message() +
                         ". Check that it is a folder that this user may read");
  return names;
}

}  // namespace troupe
