#include "troupe/snapshot/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "troupe/snapshot/open_file.hpp"
#include "troupe/snapshot/snapshot_error.hpp"
#include "troupe/snapshot/temporary_name.hpp"

namespace troupe {
namespace {

void sync_folder(const std::filesystem::path& folder) {
  open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "sync the folder").sync_folder();
}

/// `write` writes the content to the descriptor it gets.
template <class Write>
void replace(const std::filesystem::path& file, const Write& write) {
  auto temporary = file.parent_path() / temporary_name(file.filename().string());
  try {
    open_file out(temporary, O_WRONLY | O_CREAT | O_TRUNC, "write");
    write(out);
    out.sync();
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail_on_file("write", file, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(file.parent_path());
}

}  // namespace

void write_durably(const std::filesystem::path& file, std::span<const std::byte> bytes,
                   const std::function<void()>& half_written) {
  replace(file, [&](open_file& out) {
    out.write_all(bytes.first(bytes.size() / 2));
    half_written();
    out.write_all(bytes.subspan(bytes.size() / 2));
  });
}

void write_durably(const std::filesystem::path& file, std::span<const std::span<const std::byte>> pieces) {
  replace(file, [&](open_file& out) {
    for (auto piece : pieces) out.write_all(piece);
  });
}

void create_durably(const std::filesystem::path& folder) {
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem)) return;
  auto parent = std::filesystem::absolute(folder).parent_path();
  if (!std::filesystem::is_directory(parent, problem)) create_durably(parent);
  if (::mkdir(folder.c_str(), 0777) != 0 &&
      (errno != EEXIST || !std::filesystem::is_directory(folder, problem)))
    fail_on_file("create the folder", folder, errno);
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

}  // namespace troupe
