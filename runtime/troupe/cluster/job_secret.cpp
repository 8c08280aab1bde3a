#include "troupe/cluster/job_secret.hpp"

#include <fcntl.h>
#include <sodium.h>
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

/// A process and when it started: a number that is used again for another process does not count.
struct process_identity {
  std::int64_t pid = 0;
  std::string started;
  bool operator==(const process_identity&) const = default;
};

/// Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and brackets. None: there is no such
/// process.
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

std::string read_private_file(const std::filesystem::path& path) {
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  if (!file) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));
  struct stat about {};
  check_posix(::fstat(file.get(), &about), "stat " + path.string());
  if (!S_ISREG(about.st_mode)) refuse_file(path, "is not a plain file");
  if (about.st_uid != ::geteuid()) refuse_file(path, "belongs to another user");
  if ((about.st_mode & 077) != 0) refuse_file(path, "can be read or written by others");
  std::array<char, 1024> text;
  auto size = check_posix(::read(file.get(), text.data(), text.size()), "read " + path.string());
  return {text.data(), static_cast<std::size_t>(size)};
}

/// What is in the file if the process that wrote it still lives.
std::optional<secret_file> read_living(const std::filesystem::path& path) {
  std::istringstream text(read_private_file(path));
  std::string hex;
  process_identity owner;
  if (!(text >> hex >> owner.pid >> owner.started) || identify(owner.pid) != owner) return {};
  return secret_file{parse_job_secret(hex), owner};
}

void write_private_file(const std::filesystem::path& path, const std::string& text) {
  std::array<std::byte, 8> suffix;
  ::randombytes_buf(suffix.data(), suffix.size());
  auto beside = path.string() + "." + to_hex(suffix);
  unique_fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    auto problem = errno;
    ::unlink(beside.c_str());
    throw bad_input("the job secret cannot be written to " + path.string() + ": " + std::strerror(problem) +
                    ". Choose a folder of yours with XDG_RUNTIME_DIR or TMPDIR");
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
  if (auto other = read_living(path_))
    throw bad_input("port " + std::to_string(port) + " belongs to the job of process " +
                    std::to_string(other->owner.pid) + " (" + path_.string() +
                    "). Choose another with MASTER_PORT, or end that job");
  auto self = identify(::getpid()).value();
  write_private_file(path_, to_hex(secret_) + " " + std::to_string(self.pid) + " " + self.started + "\n");
}

published_job_secret::~published_job_secret() { ::unlink(path_.c_str()); }

std::vector<std::byte> wait_for_job_secret(const std::filesystem::path& folder, std::uint16_t port,
                                           std::chrono::milliseconds timeout) {
  auto path = job_secret_path(folder, port);
  auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (auto found = read_living(path)) return found->secret;
    if (std::chrono::steady_clock::now() >= until)
      throw bad_input(
          "rank 0 has not published the job secret in " + path.string() + " within " +
          std::to_string(timeout.count()) +
          " ms. Start rank 0 on this host as the same user and with the same MASTER_PORT, or give all "
          "processes the same TROUPE_JOB_SECRET");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace troupe
