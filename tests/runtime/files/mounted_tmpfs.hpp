#pragma once
#include <sched.h>
#include <sys/mount.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "support/temp_folder.hpp"

namespace troupe::testing {

/// A small file system of its own, in a mount namespace of this process alone so that nothing stays behind
/// whatever happens. Skips the test, saying why, where this process may not mount.
class mounted_tmpfs {
 public:
  explicit mounted_tmpfs(const std::string& size) {
    if (::unshare(CLONE_NEWNS) != 0) skip("leave the mount namespace");
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) skip("make mounts private");
    if (::mount("tmpfs", path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) skip("mount a tmpfs");
  }
  mounted_tmpfs(const mounted_tmpfs&) = delete;
  mounted_tmpfs& operator=(const mounted_tmpfs&) = delete;
  ~mounted_tmpfs() { ::umount2(path().c_str(), MNT_DETACH); }

  const std::filesystem::path& path() const { return folder_.path(); }
  bool make_read_only() {
    return ::mount("tmpfs", path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  static void skip(const std::string& action) {
    SKIP("this process may not " << action << ": " << std::strerror(errno) << " (run the test as root)");
  }
  temp_folder folder_;
};

}  // namespace troupe::testing
