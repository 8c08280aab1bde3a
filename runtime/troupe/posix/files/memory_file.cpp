#include "troupe/posix/files/memory_file.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "troupe/error/errors.hpp"

namespace troupe::posix {

unique_fd make_memory_file(const std::string& name, const std::string& action) {
  unique_fd made(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (made) return made;
  auto problem = errno;
  bool is_refused = problem == EPERM || problem == EACCES || problem == ENOSYS;
  throw system_failure(
      action + (is_refused ? " (memfd_create is refused here, as by a container's seccomp profile: "
                             "allow it; process groups work without it over --backend gloo)"
                           : ""),
      problem);
}

}  // namespace troupe::posix
