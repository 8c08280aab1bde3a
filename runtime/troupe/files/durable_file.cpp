#include "troupe/files/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/posix/files/working_directory.hpp"

namespace troupe::files {
namespace {

/// `write` writes the content to the descriptor it gets.
template <class Write>
void replace(const std::filesystem::path& file, mode_t mode, const Write& write) {
  require_replaceable(file);
  auto temporary = file.parent_path() / temporary_name(file.filename().string());
  try {
    open_file out(new_file{temporary, file, mode}, "write");
    write(out);
    out.sync();
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail_on_file("write", file, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(file.parent_path());
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "sync the folder").sync_folder();
}

void write_durably(const std::filesystem::path& file, std::span<const std::byte> bytes,
                   const write_hooks& hooks) {
  replace(file, hooks.mode, [&](open_file& out) {
    out.write_all(bytes.first(bytes.size() / 2), hooks.on_progress);
    hooks.half_written();
    out.write_all(bytes.subspan(bytes.size() / 2), hooks.on_progress);
  });
}

void write_durably(const std::filesystem::path& file, const std::function<void(open_file&)>& write,
                   const write_hooks& hooks) {
  replace(file, hooks.mode, write);
}

void write_durably(const std::filesystem::path& file, std::span<const std::span<const std::byte>> pieces) {
  replace(file, write_hooks().mode, [&](open_file& out) {
    for (auto piece : pieces) out.write_all(piece);
  });
}

void require_replaceable(const std::filesystem::path& file) {
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return;
  throw snapshot_error("cannot write " + file.string() + ": it is " + kind_of(found.st_mode) +
                       ", and only a regular file is overwritten. Name another file");
}

void create_durably(const std::filesystem::path& folder, mode_t mode) {
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem)) return;
  auto parent = posix::absolute_path(folder).parent_path();
  if (!std::filesystem::is_directory(parent, problem)) create_durably(parent);
  if (::mkdir(folder.c_str(), mode) != 0) {
    if (errno != EEXIST || !std::filesystem::is_directory(folder, problem))
      fail_on_file("create the folder", folder, errno);
  } else if (mode != 0777 && ::chmod(folder.c_str(), mode) != 0) {
    fail_on_file("set the permissions of", folder, errno);
  }
  sync_folder(parent);
}

void remove_durably(const std::filesystem::path& file) {
  if (::unlink(file.c_str()) != 0) {
    if (errno == ENOENT) return;
    fail_on_file("remove", file, errno);
  }
  sync_folder(file.parent_path());
}

tensor read_whole(const std::filesystem::path& file, std::uint64_t size_bytes) {
  regular_file in(file);
  if (in.size_bytes() != size_bytes)
    throw snapshot_error(file.string() + " has " + std::to_string(in.size_bytes()) + " bytes instead of " +
                         std::to_string(size_bytes));
  auto content = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  in.read_all(content.bytes());
  return content;
}

}  // namespace troupe::files
