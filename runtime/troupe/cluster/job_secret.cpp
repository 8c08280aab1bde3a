#include "troupe/cluster/job_secret.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {
namespace {

/// A process id with the start time, which distinguishes processes with a reused id.
struct process_identity {
  std::int64_t pid = 0;
  std::string started;
  bool operator==(const process_identity&) const = default;
};

/// Reads the start time, field 22 of /proc/PID/stat; the name in field 2 may contain spaces and brackets.
/// Empty if there is no such process.
std::optional<process_identity> identify(std::int64_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return {};
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return process_identity{pid, field};
}

struct secret_file {
  std::vector<std::byte> secret;
  process_identity owner;
};

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& problem) {
  throw bad_input("the job secret file " + path.string() + " " + problem +
                  ". It must be a plain file of this user with mode 0600: remove it and start again");
}

void require_private(const unique_fd& file, const std::filesystem::path& path) {
  struct stat about {};
  check_posix(::fstat(file.get(), &about), "stat " + path.string());
  if (!S_ISREG(about.st_mode)) refuse_file(path, "is not a plain file");
  if (about.st_uid != ::geteuid()) refuse_file(path, "belongs to another user");
  if ((about.st_mode & 077) != 0) refuse_file(path, "can be read or written by others");
}

std::string read_private_file(const std::filesystem::path& path) {
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  if (!file) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));
  require_private(file, path);
  std::array<char, 1024> text;
  auto size = check_posix(::read(file.get(), text.data(), text.size()), "read " + path.string());
  return {text.data(), static_cast<std::size_t>(size)};
}

/// The content of the file if the process that wrote it still runs.
std::optional<secret_file> read_living(const std::filesystem::path& path) {
  std::istringstream text(read_private_file(path));
  std::string hex;
  process_identity owner;
  if (!(text >> hex >> owner.pid >> owner.started) || identify(owner.pid) != owner) return {};
  return secret_file{parse_job_secret(hex), owner};
}

[[noreturn]] void refuse_to_write(const std::filesystem::path& path) {
  throw bad_input("the job secret cannot be written to " + path.string() + ": " + std::strerror(errno) +
                  ". Choose a folder of yours with XDG_RUNTIME_DIR or TMPDIR");
}

bool is_still_at(const unique_fd& file, const std::filesystem::path& path) {
  struct stat opened {
  }, there{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

/// The file at `path`, locked: no other process can lock it until it is closed. The kernel closes the files
/// of a process that is killed. Empty if another process holds the lock.
std::optional<unique_fd> lock_private_file(const std::filesystem::path& path) {
  while (true) {
    unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!file && (errno == ELOOP || errno == EISDIR)) refuse_file(path, "is a link or a folder");
    if (!file) refuse_to_write(path);
    require_private(file, path);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
    // The process that held the lock before may have removed the file meanwhile.
    if (is_still_at(file, path)) return file;
  }
}

/// The folders in which rank 0 publishes its secret if its environment differs from this process's.
std::vector<std::filesystem::path> other_folders(const std::filesystem::path& own) {
  std::vector<std::filesystem::path> others{"/run/user/" + std::to_string(::geteuid()), "/tmp"};
  std::erase(others, own);
  return others;
}

std::string names_of(const std::vector<std::filesystem::path>& folders) {
  std::string names;
  for (const auto& folder : folders) names += (names.empty() ? "" : ", ") + folder.string();
  return names;
}

/// Reads a file in one of these folders. Ignores one with a wrong owner or mode, which is another user's.
std::optional<secret_file> read_if_private(const std::filesystem::path& path) {
  try {
    return read_living(path);
  } catch (const bad_input&) {
    return {};
  }
}

}  // namespace

std::vector<std::byte> make_job_secret() {
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  std::vector<std::byte> made(32);
  ::randombytes_buf(made.data(), made.size());
  return made;
}

std::string derived_token(std::span<const std::byte> secret, std::string_view purpose) {
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  std::array<std::byte, 32> key, made;
  auto raw = [](auto& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); };
  ::crypto_generichash(raw(key), key.size(), reinterpret_cast<const unsigned char*>(secret.data()),
                       secret.size(), nullptr, 0);
  ::crypto_generichash(raw(made), made.size(), reinterpret_cast<const unsigned char*>(purpose.data()),
                       purpose.size(), raw(key), key.size());
  return to_hex(made);
}

std::vector<std::byte> parse_job_secret(const std::string& hex) {
  auto made = from_hex(hex);
  if (!made || made->size() < 16)
    throw bad_input(
        "the job secret (TROUPE_JOB_SECRET) is not an even number of hexadecimal digits, at least 32, but " +
        std::to_string(hex.size()) + " characters. `openssl rand -hex 32` makes one");
  return *std::move(made);
}

std::filesystem::path job_secret_path(const std::filesystem::path& folder, std::uint16_t port) {
  return folder / ("troupe-" + std::to_string(::geteuid()) + "-" + std::to_string(port) + ".secret");
}

published_job_secret::published_job_secret(const std::filesystem::path& folder, std::uint16_t port)
    : path_(job_secret_path(folder, port)), secret_(make_job_secret()) {
  auto locked = lock_private_file(path_);
  if (!locked) {
    auto other = read_living(path_);
    throw bad_input("port " + std::to_string(port) + " belongs to the job of " +
                    (other ? "process " + std::to_string(other->owner.pid) : "another rank 0") + " (" +
                    path_.string() + "). Choose another with MASTER_PORT, or end that job");
  }
  file_ = *std::move(locked);
  auto self = identify(::getpid()).value();
  auto text = to_hex(secret_) + " " + std::to_string(self.pid) + " " + self.started + "\n";
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    refuse_to_write(path_);
}

published_job_secret::~published_job_secret() { ::unlink(path_.c_str()); }

std::vector<std::byte> wait_for_job_secret(const std::filesystem::path& folder, std::uint16_t port,
                                           std::chrono::milliseconds timeout) {
  auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (auto found = read_living(job_secret_path(folder, port))) return found->secret;
    for (const auto& other : other_folders(folder))
      if (auto found = read_if_private(job_secret_path(other, port))) return found->secret;
    if (std::chrono::steady_clock::now() >= until)
      throw bad_input("rank 0 has not published the job secret in " + job_secret_path(folder, port).string() +
                      " (nor in " + names_of(other_folders(folder)) + ") within " +
                      std::to_string(timeout.count()) +
                      " ms. Start rank 0 on this host as the same user and with the same MASTER_PORT, or "
                      "give all processes the same TROUPE_JOB_SECRET");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace troupe
