#include "troupe/snapshot/snapshot_store.hpp"

#include <array>
#include <ctime>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/durable_file.hpp"
#include "troupe/snapshot/folder_layout.hpp"
#include "troupe/snapshot/temporary_name.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t largest_manifest_bytes = std::uint64_t{64} << 20;

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm fields{};
  ::gmtime_r(&now, &fields);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &fields)};
}

snapshot_manifest read_manifest(const std::filesystem::path& file) {
  auto size_bytes = std::filesystem::file_size(file);
  if (size_bytes > largest_manifest_bytes)
    throw snapshot_error("it is no manifest: it has " + std::to_string(size_bytes) + " bytes");
  auto content = read_whole(file, size_bytes);
  return manifest_from_text({reinterpret_cast<const char*>(content.bytes().data()), content.size_bytes()});
}

/// What the sizes of the files of a snapshot tell: the first problem, or nothing.
std::string problem_of_files(const snapshot_manifest& manifest, const std::filesystem::path& folder) {
  for (const auto& part : manifest.parts) {
    std::error_code problem;
    auto found = std::filesystem::file_size(folder / part.file, problem);
    if (problem == std::errc::no_such_file_or_directory && part.host != host_name()) continue;
    if (problem == std::errc::no_such_file_or_directory) return part.file + " is missing";
    if (problem) return part.file + " cannot be read: " + problem.message();
    if (found != part.size_bytes)
      return part.file + " has " + std::to_string(found) + " bytes instead of " +
             std::to_string(part.size_bytes);
  }
  return {};
}

/// Says where `part` is not the one that `entry` of `manifest` stands for.
std::string mismatch(const snapshot_part& part, const snapshot_manifest& manifest,
                     const manifest_part& entry) {
  auto place = [](std::uint64_t step, std::uint32_t stage, std::uint32_t num_stages, const std::string& job) {
    return "step " + std::to_string(step) + ", stage " + std::to_string(stage) + " of " +
           std::to_string(num_stages) + ", job '" + job + "'";
  };
  auto found = place(part.step, part.stage, part.num_stages, part.job_id);
  auto expected = place(manifest.step, entry.stage, manifest.num_stages, manifest.job_id);
  return found == expected ? "" : "it is of " + found + ", the manifest wants " + expected;
}

snapshot_part decode_as(const snapshot_manifest& manifest, const manifest_part& entry,
                        std::span<const std::byte> bytes) {
  auto part = decode_part(bytes);
  if (auto found = to_hex(stored_checksum(bytes)); found != entry.checksum)
    throw snapshot_error("its checksum is " + found + ", the manifest's " + entry.checksum);
  if (auto problem = mismatch(part, manifest, entry); !problem.empty()) throw snapshot_error(problem);
  return part;
}

/// Removes what killed writers left in `folder`. What cannot be removed now is tried again by the next
/// commit.
void remove_abandoned(const std::filesystem::path& folder) {
  std::error_code tried_again_later;
  for (const auto& name : names_in(folder))
    if (is_abandoned(name)) std::filesystem::remove(folder / name, tried_again_later);
}

}  // namespace

std::string_view to_string(snapshot_state state) {
  switch (state) {
    case snapshot_state::ok:
      return "ok";
    case snapshot_state::incomplete:
      return "incomplete";
    case snapshot_state::damaged:
      return "damaged";
  }
  return "unknown";
}

snapshot_store::snapshot_store(snapshot_store_options options) : options_(std::move(options)) {
  if (options_.folder.empty()) throw_invalid("snapshot_store", "the name of a folder", "an empty one");
  if (options_.keep < 1)
    throw_invalid("snapshot_store", "keep at least 1 snapshot", std::to_string(options_.keep));
}

std::filesystem::path snapshot_store::folder_of(std::uint64_t step) const {
  return options_.folder / step_folder_name(step);
}

void snapshot_store::prepare() {
  create_durably(options_.folder);
  std::array<std::byte, 4096> content{};
  auto probe = options_.folder / temporary_name("probe");
  write_durably(probe, content);
  remove_durably(probe);
}

manifest_part snapshot_store::write_part(std::uint64_t step, std::uint32_t stage,
                                         std::span<const std::byte> encoded) {
  manifest_part entry{stage, part_file_name(stage), encoded.size(), to_hex(stored_checksum(encoded)),
                      host_name()};
  auto folder = folder_of(step);
  create_durably(folder);
  write_durably(folder / entry.file, encoded, [this] { options_.at_point("part_half_written"); });
  options_.at_point("part_written");
  return entry;
}

void snapshot_store::commit(const snapshot_manifest& manifest) {
  auto folder = folder_of(manifest.step);
  if (auto problem = problem_of(manifest); !problem.empty())
    throw_invalid("snapshot_store::commit", "a manifest with every stage's part", problem);
  if (auto problem = problem_of_files(manifest, folder); !problem.empty())
    throw snapshot_error("cannot commit " + folder.string() + ": " + problem + ". Write its parts again");
  undo_newer_than(manifest.step);
  auto dated = manifest;
  if (dated.created.empty()) dated.created = utc_now();
  auto text = manifest_text(dated);
  options_.at_point("before_manifest");
  write_durably(folder / manifest_file_name, std::as_bytes(std::span(text)));
  options_.at_point("manifest_written");
  prune(manifest.step);
}

void snapshot_store::undo_newer_than(std::uint64_t step) {
  for (auto newer : steps_in(options_.folder))
    if (newer > step && std::filesystem::exists(folder_of(newer) / manifest_file_name))
      remove(folder_of(newer));
}

void snapshot_store::prune(std::uint64_t newest) {
  remove_abandoned(options_.folder);
  int kept = 0;
  for (auto step : steps_in(options_.folder)) {
    auto info = look_at(step);
    bool unwanted = kept >= options_.keep || info.state == snapshot_state::incomplete;
    if (step <= newest && unwanted)
      remove(info.folder);
    else
      remove_abandoned(info.folder);
    if (step <= newest && info.state == snapshot_state::ok) ++kept;
  }
}

void snapshot_store::remove(const std::filesystem::path& snapshot_folder) {
  // Without its manifest it does not exist, whatever happens from here on: what is left is incomplete, and
  // the next commit tries to remove it again.
  remove_durably(snapshot_folder / manifest_file_name);
  options_.at_point("manifest_removed");
  std::error_code tried_again_later;
  std::filesystem::remove_all(snapshot_folder, tried_again_later);
}

snapshot_info snapshot_store::look_at(std::uint64_t step) const {
  snapshot_info info{step, folder_of(step), snapshot_state::damaged, {}, {}};
  auto file = info.folder / manifest_file_name;
  std::error_code problem;
  if (!std::filesystem::exists(file, problem) && !problem) {
    info.state = snapshot_state::incomplete;
    info.problem = "no manifest, so it was not finished";
    return info;
  }
  try {
    info.manifest = read_manifest(file);
    info.problem = info.manifest->step == step
                       ? problem_of_files(*info.manifest, info.folder)
                       : "its manifest is of step " + std::to_string(info.manifest->step);
    if (info.problem.empty()) info.state = snapshot_state::ok;
  } catch (const std::runtime_error& failure) {
    info.problem = std::string(manifest_file_name) + " is unusable: " + failure.what();
  }
  return info;
}

std::vector<snapshot_info> snapshot_store::list() const {
  std::vector<snapshot_info> infos;
  for (auto step : steps_in(options_.folder)) infos.push_back(look_at(step));
  return infos;
}

std::vector<std::string> snapshot_store::verify(const snapshot_info& which) const {
  if (!which.manifest || which.manifest->step != which.step) return {which.problem};
  std::vector<std::string> problems;
  for (const auto& entry : which.manifest->parts) {
    try {
      read_part(*which.manifest, entry.stage);
    } catch (const snapshot_error& problem) {
      problems.emplace_back(problem.what());
    }
  }
  return problems;
}

snapshot_part snapshot_store::read_part(const snapshot_manifest& manifest, std::uint32_t stage) const {
  if (stage >= manifest.parts.size())
    throw_invalid("snapshot_store::read_part", "a stage below " + std::to_string(manifest.parts.size()),
                  std::to_string(stage));
  const auto& entry = manifest.parts[stage];
  auto file = folder_of(manifest.step) / entry.file;
  auto content = read_whole(file, entry.size_bytes);
  try {
    return decode_as(manifest, entry, content.bytes());
  } catch (const snapshot_error& problem) {
    throw snapshot_error(file.string() + " cannot be used: " + problem.what() + ". Use another snapshot");
  }
}

std::optional<snapshot_manifest> snapshot_store::newest_valid(
    const std::function<void(const std::string&)>& warn) const {
  for (const auto& info : list()) {
    if (info.state == snapshot_state::incomplete) continue;
    auto problems = info.problem.empty() ? verify(info) : std::vector{info.problem};
    if (problems.empty()) return info.manifest;
    warn("the snapshot of step " + std::to_string(info.step) + " in " + info.folder.string() +
         " is not used: " + problems.front());
  }
  return {};
}

}  // namespace troupe
