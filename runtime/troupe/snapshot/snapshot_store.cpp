#include "troupe/snapshot/snapshot_store.hpp"

#include <sys/types.h>

#include <array>
#include <ctime>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/snapshot/folder_layout.hpp"

namespace troupe::snapshot {
namespace {

struct permissions {
  mode_t file, folder;
};

permissions permissions_of(snapshot_access access) {
  if (access == snapshot_access::owner) return {0600, 0700};
  if (access == snapshot_access::group) return {0640, 0750};
  return {0666, 0777};
}

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm fields{};
  ::gmtime_r(&now, &fields);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &fields)};
}

}  // namespace

snapshot_store::snapshot_store(snapshot_store_options options) : options_(std::move(options)) {
  if (options_.folder.empty()) throw_invalid("snapshot_store", "the name of a folder", "an empty one");
  if (options_.keep < 1)
    throw_invalid("snapshot_store", "keep at least 1 snapshot", std::to_string(options_.keep));
}

std::filesystem::path snapshot_store::folder_of(std::uint64_t step) const {
  return options_.folder / step_folder_name(step);
}

void snapshot_store::prepare() {
  files::create_durably(options_.folder, permissions_of(options_.access).folder);
  std::array<std::byte, 4096> content{};
  auto probe = options_.folder / files::temporary_name("probe");
  files::write_durably(probe, content);
  files::remove_durably(probe);
}

/// Writes; if the disk is full, frees space and writes once more.
template <class Write>
auto snapshot_store::write_freeing_space(std::uint64_t step, const Write& write) {
  try {
    try {
      return write();
    } catch (const files::disk_full&) {
      free_space(step);
      return write();
    }
  } catch (const files::snapshot_error&) {
    std::error_code not_empty;
    std::filesystem::remove(folder_of(step), not_empty);
    throw;
  }
}

manifest_part snapshot_store::write_part(std::uint64_t step, const layout::part_id& part,
                                         std::span<const std::byte> encoded) {
  part_reader written(source_in(encoded));
  manifest_part entry{part,
                      part_file_name(part),
                      encoded.size(),
                      wire::to_hex(written.checksum()),
                      files::host_name(),
                      written.header().contents};
  return write_freeing_space(step, [&] {
    create_folders(step);
    return write_once(entry, folder_of(step), encoded);
  });
}

manifest_file snapshot_store::write_calls(std::uint64_t step, std::size_t num_results,
                                          const files::block_source& result) {
  return write_freeing_space(step, [&] {
    create_folders(step);
    auto& file = calls_.front();
    auto written = file.write(folder_of(step) / calls_file_name, num_results, result,
                              permissions_of(options_.access).file);
    if (!file.link_problem().empty() && !std::exchange(has_warned_, true))
      options_.warn("each snapshot writes the results of all calls, some 100 bytes a call: " +
                    file.link_problem());
    if (options_.keep > 1) std::swap(calls_.front(), calls_.back());
    return manifest_file{std::string(calls_file_name), written.size_bytes, wire::to_hex(written.sum),
                         files::host_name()};
  });
}

void snapshot_store::create_folders(std::uint64_t step) {
  auto mode = permissions_of(options_.access).folder;
  files::create_durably(options_.folder, mode);
  files::create_durably(folder_of(step), mode);
}

manifest_part snapshot_store::write_once(const manifest_part& entry, const std::filesystem::path& folder,
                                         std::span<const std::byte> encoded) {
  files::write_durably(folder / entry.file, encoded,
                       {[this] { options_.at_point("part_half_written"); }, options_.on_progress,
                        permissions_of(options_.access).file});
  options_.at_point("part_written");
  return entry;
}

void snapshot_store::commit(const snapshot_manifest& manifest) {
  auto folder = folder_of(manifest.step);
  if (auto problem = problem_of(manifest); !problem.empty())
    throw_invalid("snapshot_store::commit", "a manifest with every stage's part", problem);
  if (auto problem = problem_of_files(manifest, folder); !problem.empty())
    throw files::snapshot_error("cannot commit " + folder.string() + ": " + problem +
                                ". Write its parts again");
  undo_newer_than(manifest.step);
  auto dated = manifest;
  if (dated.created.empty()) dated.created = utc_now();
  auto text = manifest_text(dated);
  options_.at_point("before_manifest");
  files::write_hooks hooks;
  hooks.mode = permissions_of(options_.access).file;
  write_durably(folder / manifest_file_name, std::as_bytes(std::span(text)), hooks);
  options_.at_point("manifest_written");
  prune(manifest.step);
}

}  // namespace troupe::snapshot
