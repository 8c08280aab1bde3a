#include "troupe/messaging/job_secret.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/private_folder.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe::messaging {
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

void require_private(const posix::unique_fd& file, const std::filesystem::path& path) {
  struct stat about {};
  check_posix(::fstat(file.get(), &about), "stat " + path.string());
  if (!S_ISREG(about.st_mode)) refuse_file(path, "is not a plain file");
  if (about.st_uid != ::geteuid()) refuse_file(path, "belongs to another user");
  if ((about.st_mode & 077) != 0) refuse_file(path, "can be read or written by others");
}

std::string read_private_file(const std::filesystem::path& path) {
  posix::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
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

bool is_still_at(const posix::unique_fd& file, const std::filesystem::path& path) {
  struct stat opened {
  }, there{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

struct locked_file {
  posix::unique_fd fd;
  bool is_in_use = false;  ///< another process holds the lock
  std::string problem;     ///< why the folder cannot be used
};

/// The file at `path`, locked: no other process can lock it until it is closed. The kernel closes the files
/// of a process that is killed.
locked_file lock_private_file(const std::filesystem::path& path) {
  while (true) {
    auto opened = posix::open_safely(path, {.mode = 0600});
    if (!opened.fd && opened.error_number == 0) refuse_file(path, opened.problem);
    if (!opened.fd && (opened.error_number == ELOOP || opened.error_number == EISDIR))
      refuse_file(path, "is a link or a folder");
    if (!opened.fd) return {{}, false, opened.problem};
    if (::flock(opened.fd.get(), LOCK_EX | LOCK_NB) != 0) return {{}, true, {}};
    // The process that held the lock before may have removed the file meanwhile.
    if (is_still_at(opened.fd, path)) return {std::move(opened.fd), false, {}};
  }
}

posix::private_folder folder_for_secret(const std::filesystem::path& folder) {
  auto resolved = folder;
  std::error_code missing;
  if (auto target = std::filesystem::canonical(folder, missing); !missing) resolved = target;
  if (posix::problem_of_private(resolved).empty()) return {resolved, {}};
  return posix::private_folder_in(resolved);
}

using folder_list = std::vector<std::filesystem::path>;

/// All in which rank 0 may publish its secret: its environment may differ from this process's.
folder_list searched_folders(folder_list own) {
  for (const auto& other : {"/run/user/" + std::to_string(::geteuid()), std::string("/tmp")})
    if (std::ranges::find(own, std::filesystem::path(other)) == own.end()) own.emplace_back(other);
  return own;
}

std::string names_of(const folder_list& folders) {
  std::string names;
  for (const auto& folder : folders) names += (names.empty() ? "" : ", ") + folder.string();
  return names;
}

std::optional<secret_file> find_living(const std::filesystem::path& given, std::uint16_t port) {
  std::error_code missing;
  auto folder = std::filesystem::canonical(given, missing);
  if (missing) return {};
  if (posix::problem_of_private(folder).empty())
    if (auto found = read_living(job_secret_path(folder, port))) return found;
  for (const auto& each : posix::private_folders_in(folder))
    if (auto found = read_living(job_secret_path(each, port))) return found;
  return {};
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
  return wire::to_hex(made);
}

std::vector<std::byte> parse_job_secret(const std::string& hex) {
  auto made = wire::from_hex(hex);
  if (!made || made->size() < 16)
    throw bad_input(
        "the job secret (TROUPE_JOB_SECRET) is not an even number of hexadecimal digits, at least 32, but " +
        std::to_string(hex.size()) + " characters. `openssl rand -hex 32` makes one");
  return *std::move(made);
}

std::filesystem::path job_secret_path(const std::filesystem::path& folder, std::uint16_t port) {
  return folder / ("troupe-" + std::to_string(::geteuid()) + "-" + std::to_string(port) + ".secret");
}

published_job_secret::published_job_secret(const std::vector<std::filesystem::path>& folders,
                                           std::uint16_t port)
    : secret_(make_job_secret()) {
  std::string problems;
  for (const auto& folder : folders) {
    auto problem = publish_in(folder, port);
    if (problem.empty()) return;
    problems += (problems.empty() ? "" : "; ") + folder.string() + ": " + problem;
  }
  throw bad_input("the job secret cannot be written (" + problems +
                  "). Name a folder of yours with XDG_RUNTIME_DIR or TMPDIR");
}

/// Returns why it cannot be published there; empty: it is.
std::string published_job_secret::publish_in(const std::filesystem::path& folder, std::uint16_t port) {
  auto place = folder_for_secret(folder);
  if (place.path.empty()) return place.problem;
  path_ = job_secret_path(place.path, port);
  auto locked = lock_private_file(path_);
  if (locked.is_in_use) {
    auto other = read_living(path_);
    throw bad_input("port " + std::to_string(port) + " belongs to the job of " +
                    (other ? "process " + std::to_string(other->owner.pid) : "another rank 0") + " (" +
                    path_.string() + "). Choose another with MASTER_PORT, or end that job");
  }
  if (!locked.fd) return locked.problem;
  file_ = std::move(locked.fd);
  auto self = identify(::getpid()).value();
  auto text = wire::to_hex(secret_) + " " + std::to_string(self.pid) + " " + self.started + "\n";
  if (::ftruncate(file_.get(), 0) == 0 &&
      ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    return {};
  auto problem = std::strerror(errno);
  ::unlink(path_.c_str());
  file_.reset();
  return problem;
}

published_job_secret::~published_job_secret() { ::unlink(path_.c_str()); }

std::vector<std::byte> wait_for_job_secret(const std::vector<std::filesystem::path>& folders,
                                           std::uint16_t port, std::chrono::milliseconds timeout) {
  auto until = std::chrono::steady_clock::now() + timeout;
  auto searched = searched_folders(folders);
  while (true) {
    for (const auto& folder : searched)
      if (auto found = find_living(folder, port)) return found->secret;
    if (std::chrono::steady_clock::now() >= until)
      throw bad_input("rank 0 has not published the job secret for port " + std::to_string(port) +
                      " in any of " + names_of(searched) + " within " + std::to_string(timeout.count()) +
                      " ms. Start rank 0 on this host as the same user and with the same MASTER_PORT, or "
                      "give all processes the same TROUPE_JOB_SECRET");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace troupe::messaging
