// snapshot_store: deletes old snapshots and sets damaged ones aside.
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "troupe/files/durable_file.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/snapshot/folder_layout.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::snapshot {
namespace {

/// Removes the files that killed writers left in `folder`. The next commit tries again to remove files that
/// cannot be removed now.
void remove_abandoned(const std::filesystem::path& folder) {
  std::error_code tried_again_later;
  for (const auto& name : names_in(folder))
    if (files::is_abandoned(name)) std::filesystem::remove(folder / name, tried_again_later);
}

}  // namespace

void snapshot_store::set_aside(const snapshot_info& which) {
  auto to = options_.folder / free_set_aside_name(options_.folder, which.step);
  if (::rename(which.folder.c_str(), to.c_str()) != 0) {
    auto problem = errno;
    std::error_code unknown;
    // Another process may have set it aside already.
    if (problem == ENOENT && !std::filesystem::exists(which.folder, unknown)) return;
    files::fail_on_file("set aside", which.folder, problem);
  }
  files::sync_folder(options_.folder);
}

void snapshot_store::undo_newer_than(std::uint64_t step) {
  for (const auto& info : list()) {
    if (info.step <= step || info.state == snapshot_state::incomplete) continue;
    info.state == snapshot_state::damaged ? set_aside(info) : remove(info.folder);
  }
}

void snapshot_store::prune(std::uint64_t newest) {
  remove_abandoned(options_.folder);
  int kept = 0;
  for (const auto& info : list()) {
    remove_abandoned(info.folder);
    if (info.step > newest) continue;
    if (info.state == snapshot_state::incomplete)
      remove(info.folder);
    else if (kept >= options_.keep)
      info.state == snapshot_state::damaged ? set_aside(info) : remove(info.folder);
    if (info.state == snapshot_state::ok) ++kept;
  }
}

/// Removes unfinished snapshots of earlier steps, and snapshots older than the newest one that passes its
/// checks. That one is never removed.
void snapshot_store::free_space(std::uint64_t for_step) {
  remove_abandoned(options_.folder);
  bool have_valid = false;
  for (const auto& info : list()) {
    if (info.step >= for_step) continue;
    bool spare = info.state == snapshot_state::incomplete || (info.state == snapshot_state::ok && have_valid);
    if (spare)
      remove(info.folder);
    else if (info.state == snapshot_state::ok)
      have_valid = verify(info).empty();
  }
}

void snapshot_store::discard(std::uint64_t step) {
  std::error_code unknown;
  auto folder = folder_of(step);
  if (!std::filesystem::exists(folder / manifest_file_name, unknown) && !unknown) remove(folder);
}

void snapshot_store::remove(const std::filesystem::path& snapshot_folder) {
  // Without its manifest the snapshot does not exist any more. If the removal fails later, the rest is
  // incomplete, and the next commit tries to remove it again.
  std::error_code tried_again_later;
  if (!std::filesystem::exists(snapshot_folder, tried_again_later)) return;
  files::remove_durably(snapshot_folder / manifest_file_name);
  options_.at_point("manifest_removed");
  std::filesystem::remove_all(snapshot_folder, tried_again_later);
}

}  // namespace troupe::snapshot
