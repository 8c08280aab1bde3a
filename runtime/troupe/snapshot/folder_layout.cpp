#include "troupe/snapshot/folder_layout.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "troupe/error/errors.hpp"
#include "troupe/files/snapshot_error.hpp"

namespace troupe::snapshot {
namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view set_aside_prefix = "set-aside-";
constexpr std::size_t least_digits = 12;

std::string with_zeros(std::uint64_t number, std::size_t width) {
  auto digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

}  // namespace

std::string step_folder_name(std::uint64_t step) {
  return std::string(step_prefix) + with_zeros(step, least_digits);
}

std::optional<std::uint64_t> step_from_folder_name(std::string_view name) {
  if (!name.starts_with(step_prefix)) return {};
  auto digits = name.substr(step_prefix.size());
  std::uint64_t step = 0;
  auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (status != std::errc() || step_folder_name(step) != name) return {};
  return step;
}

std::optional<std::uint64_t> step_from_set_aside_name(std::string_view name) {
  if (!name.starts_with(set_aside_prefix)) return {};
  name.remove_prefix(set_aside_prefix.size());
  auto count = name.find('-', step_prefix.size());
  return step_from_folder_name(name.substr(0, count));
}

std::string free_set_aside_name(const std::filesystem::path& root, std::uint64_t step) {
  auto first = std::string(set_aside_prefix) + step_folder_name(step);
  auto name = first;
  std::error_code problem;
  for (int count = 2; std::filesystem::exists(std::filesystem::symlink_status(root / name, problem)); ++count)
    name = first + "-" + std::to_string(count);
  return name;
}

std::string part_file_name(const layout::part_id& part) {
  auto numbered = [](const char* name, int number) {
    return name + with_zeros(static_cast<std::uint64_t>(number), 4);
  };
  auto text = numbered("stage-", part.cell.stage);
  if (part.cell.replica != 0) text += numbered("-replica-", part.cell.replica);
  if (part.cell.slice != 0) text += numbered("-slice-", part.cell.slice);
  if (part.shard != 0) text += numbered("-shard-", part.shard);
  return text + ".part";
}

void require_no_snapshot(const std::filesystem::path& folder) {
  std::error_code none;  // whoever reads the folder says what is wrong with it
  if (!std::filesystem::is_regular_file(folder / manifest_file_name, none)) return;
  auto whole = std::filesystem::weakly_canonical(folder, none);
  if (none || !step_from_folder_name(whole.filename().string())) return;
  throw bad_input("'" + folder.string() +
                  "' is one snapshot, not a folder of snapshots. Name the folder that it is in, '" +
                  whole.parent_path().string() + "'");
}

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
    throw files::snapshot_error("cannot read the folder " + folder.string() + ": " + problem.message() +
                                ". Check that it is a folder that this user may read");
  return names;
}

}  // namespace troupe::snapshot
