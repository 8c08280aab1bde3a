// snapshot_store: lists and verifies the snapshots on disk.
#include <algorithm>
#include <functional>
#include <new>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/printable_text.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/snapshot/folder_layout.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::snapshot {
namespace {

constexpr std::uint64_t max_manifest_bytes = std::uint64_t{64} << 20;

snapshot_manifest read_manifest(const std::filesystem::path& file) {
  auto size_bytes = std::filesystem::file_size(file);
  if (size_bytes > max_manifest_bytes)
    throw files::snapshot_error("it is no manifest: it has " + std::to_string(size_bytes) + " bytes");
  auto content = files::read_whole(file, size_bytes);
  return manifest_from_text({reinterpret_cast<const char*>(content.bytes().data()), content.size_bytes()});
}

/// The first difference between `part` and its entry in `manifest`; empty if there is none.
std::string mismatch(const snapshot_part& part, const snapshot_manifest& manifest,
                     const manifest_part& entry) {
  auto place = [](std::uint64_t step, const layout::part_id& id, std::uint32_t num_stages,
                  const std::string& job) {
    return "step " + std::to_string(step) + ", " + to_string(id) + " of " + std::to_string(num_stages) +
           " stages, job '" + job + "'";
  };
  auto found = place(part.step, part.part, part.num_stages, part.job_id);
  auto expected = place(manifest.step, entry.part, manifest.num_stages, manifest.job_id);
  if (found != expected) return "it is of " + found + ", expected " + expected + " as in the manifest";
  if (entry.contents && *entry.contents != part.contents)
    return "it holds other tensors than the manifest lists for " + to_string(entry.part);
  return {};
}

void require_listed(const part_reader& part, const snapshot_manifest& manifest, const manifest_part& entry) {
  if (auto found = wire::to_hex(part.checksum()); found != entry.checksum)
    throw files::snapshot_error("its checksum is " + found + ", expected " + entry.checksum +
                                " as in the manifest");
  if (auto problem = mismatch(part.header(), manifest, entry); !problem.empty())
    throw files::snapshot_error(problem);
}

/// `entry`: a part or another file of the manifest. `may_have_grown`: its entry describes its beginning.
template <class Entry>
std::string problem_of_file(const Entry& entry, const std::filesystem::path& folder, bool may_have_grown) {
  std::error_code problem;
  auto found = std::filesystem::file_size(folder / entry.file, problem);
  if (problem == std::errc::no_such_file_or_directory)
    return entry.host == files::host_name() ? entry.file + " is missing" : "";
  if (problem) return entry.file + " cannot be read: " + problem.message();
  if (found == entry.size_bytes || (may_have_grown && found > entry.size_bytes)) return {};
  return entry.file + " has " + std::to_string(found) + " bytes instead of " +
         std::to_string(entry.size_bytes);
}

template <class Entry>
void require_here(const Entry& entry, const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::exists(file, problem) && !problem && entry.host != files::host_name())
    throw files::snapshot_error(
        file.string() + " cannot be used: it is on host " + entry.host + ", and this one, " +
        files::host_name() +
        ", does not see it (No such file). Resume on the hosts that wrote it, or copy it here");
}

[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::exception& failure) {
  throw files::snapshot_error(file.string() + " cannot be used: " + failure.what() +
                              ". Use another snapshot");
}

files::checksum checksum_from(const std::string& hex) {
  auto bytes = wire::from_hex(hex);
  if (!bytes || bytes->size() != files::checksum_bytes)
    throw files::snapshot_error("the manifest has the malformed checksum '" + hex + "'");
  files::checksum sum;
  std::ranges::copy(*bytes, sum.begin());
  return sum;
}

void sort_newest_first(std::vector<snapshot_info>& infos) {
  std::ranges::stable_sort(infos, std::greater(), &snapshot_info::step);
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
    case snapshot_state::set_aside:
      return "set aside";
  }
  return "unknown";
}

std::string problem_of_files(const snapshot_manifest& manifest, const std::filesystem::path& folder) {
  for (const auto& part : manifest.parts)
    if (auto problem = problem_of_file(part, folder, false); !problem.empty()) return problem;
  return manifest.calls ? problem_of_file(*manifest.calls, folder, true) : "";
}

snapshot_info snapshot_store::look_at(std::uint64_t step, const std::filesystem::path& folder) const {
  snapshot_info info{step, folder, snapshot_state::damaged, {}, {}};
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
  info.problem = files::printable(info.problem);
  return info;
}

std::vector<snapshot_info> snapshot_store::list() const {
  std::vector<snapshot_info> infos;
  for (auto step : steps_in(options_.folder)) infos.push_back(look_at(step, folder_of(step)));
  return infos;
}

std::vector<snapshot_info> snapshot_store::list_set_aside() const {
  std::vector<snapshot_info> infos;
  for (const auto& name : names_in(options_.folder)) {
    auto step = step_from_set_aside_name(name);
    if (!step) continue;
    infos.push_back(look_at(*step, options_.folder / name));
    infos.back().state = snapshot_state::set_aside;
  }
  sort_newest_first(infos);
  return infos;
}

std::vector<std::string> snapshot_store::verify(const snapshot_info& which) const {
  if (!which.manifest || which.manifest->step != which.step) return {which.problem};
  std::vector<std::string> problems;
  auto check = [&](const auto& read) {
    try {
      read();
    } catch (const files::snapshot_error& problem) {
      problems.push_back(files::printable(problem.what()));
    }
  };
  for (const auto& entry : which.manifest->parts)
    check([&] { open_entry(which.folder, *which.manifest, entry).check(); });
  if (which.manifest->calls) check([&] { read_calls(which.folder, *which.manifest->calls, nullptr); });
  return problems;
}

stored_part snapshot_store::open_part(const snapshot_manifest& manifest,
                                      const layout::part_id& wanted) const {
  auto found = std::ranges::find(manifest.parts, wanted, &manifest_part::part);
  if (found == manifest.parts.end())
    throw_invalid("snapshot_store::open_part",
                  "one of the " + std::to_string(manifest.parts.size()) + " parts of the manifest",
                  to_string(wanted));
  return open_entry(folder_of(manifest.step), manifest, *found);
}

stored_part snapshot_store::open_entry(const std::filesystem::path& folder, const snapshot_manifest& manifest,
                                       const manifest_part& entry) const {
  auto file = folder / entry.file;
  require_here(entry, file);
  try {
    part_reader reader(source_in(file, entry.size_bytes), options_.on_progress);
    require_listed(reader, manifest, entry);
    return stored_part(file, std::move(reader));
  } catch (const files::snapshot_error& failure) {
    refuse_file(file, failure);
  }
}

void stored_part::read(std::size_t tensor, std::int64_t first, std::span<std::byte> to) {
  try {
    reader_.read(tensor, first, to);
  } catch (const files::snapshot_error& failure) {
    refuse_file(file_, failure);
  }
}

named_tensor stored_part::read(std::size_t tensor) {
  try {
    return reader_.read(tensor);
  } catch (const files::snapshot_error& failure) {
    refuse_file(file_, failure);
  } catch (const std::bad_alloc&) {
    throw files::snapshot_error(file_.string() + " holds " + contents()[tensor].name + " of shape " +
                                to_string(stored_shape(contents()[tensor])) +
                                ", for which there is too little memory. Read it on a larger machine");
  }
}

void stored_part::check() {
  try {
    reader_.check();
  } catch (const files::snapshot_error& failure) {
    refuse_file(file_, failure);
  }
}

void snapshot_store::read_calls(const snapshot_manifest& manifest, const files::block_sink& take) const {
  if (!manifest.calls)
    throw_invalid("snapshot_store::read_calls", "a manifest that lists results of calls", "one without");
  read_calls(folder_of(manifest.step), *manifest.calls, &take);
}

/// Without `take` it only checks the file.
void snapshot_store::read_calls(const std::filesystem::path& folder, const manifest_file& entry,
                                const files::block_sink* take) const {
  auto file = folder / entry.file;
  require_here(entry, file);
  try {
    files::written_blocks expected{entry.size_bytes, checksum_from(entry.checksum)};
    take ? read_blocks(file, expected, *take) : check_blocks(file, expected);
  } catch (const files::snapshot_error& failure) {
    refuse_file(file, failure);
  }
}

snapshot_search snapshot_store::find() const {
  snapshot_search search;
  for (auto& info : list()) {
    auto problems = info.problem.empty() ? verify(info) : std::vector{info.problem};
    if (problems.empty()) {
      search.found = std::move(info.manifest);
      return search;
    }
    search.unusable.push_back({std::move(info), std::move(problems.front())});
  }
  return search;
}

std::optional<snapshot_manifest> snapshot_store::newest_valid(
    const std::function<void(const std::string&)>& warn) const {
  auto search = find();
  for (const auto& [info, reason] : search.unusable)
    if (info.state != snapshot_state::incomplete)
      warn("the snapshot of step " + std::to_string(info.step) + " in " + info.folder.string() +
           " is not used: " + reason);
  return search.found;
}

}  // namespace troupe::snapshot
