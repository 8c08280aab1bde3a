#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/posix/unique_fd.hpp"
#include "troupe/wire/hex.hpp"

namespace troupe::messaging {

/// 32 random bytes: the shared secret of a job's processes.
std::vector<std::byte> make_job_secret();
/// Throws bad_input unless `hex` is an even number of hexadecimal digits, at least 32 of them. The message
/// does not show them.
std::vector<std::byte> parse_job_secret(const std::string& hex);
/// A token for one purpose, 64 hexadecimal digits: BLAKE2b of `purpose` keyed with the secret.
std::string derived_token(std::span<const std::byte> secret, std::string_view purpose);

/// Where the processes of a job without a launcher find its secret: one file for each user and port, in a
/// folder that only this user can enter.
std::filesystem::path job_secret_path(const std::filesystem::path& folder, std::uint16_t port);

/// Rank 0's side: makes a fresh secret and publishes it in a file that only this user can read, for as long
/// as this object lives. The file names this process, so that a file left behind by a killed job
/// is ignored.
///
/// `folders` are tried in their order. One that belongs to this user alone (mode 0700), such as
/// XDG_RUNTIME_DIR, holds the file itself. Another one, such as /tmp, holds a folder troupe-UID of this user,
/// or troupe-UID-XXXXXX where another user has taken that name.
///
/// Throws bad_input if another living process has published one (the port is in use by its job), or in none
/// of the folders a file can be written.
class published_job_secret {
 public:
  published_job_secret(const std::vector<std::filesystem::path>& folders, std::uint16_t port);
  published_job_secret(const published_job_secret&) = delete;
  published_job_secret& operator=(const published_job_secret&) = delete;
  ~published_job_secret();
  const std::vector<std::byte>& secret() const { return secret_; }

 private:
  std::string publish_in(const std::filesystem::path& folder, std::uint16_t port);

  std::filesystem::path path_;
  std::vector<std::byte> secret_;
  posix::unique_fd file_;  ///< the published file, locked while the job lives
};

/// The others' side: waits for the file of a living rank 0 in any of `folders`, in /run/user/UID and /tmp:
/// rank 0 may have been started with another environment. Throws bad_input when there is none in time, and
/// at once when one in a folder of this user is not a plain file of this user that no other can read or
/// write.
std::vector<std::byte> wait_for_job_secret(const std::vector<std::filesystem::path>& folders,
                                           std::uint16_t port, std::chrono::milliseconds timeout);

}  // namespace troupe::messaging
