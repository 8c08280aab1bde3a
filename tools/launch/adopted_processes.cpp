#include "adopted_processes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {

bool adopts_processes() {
  int is_subreaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0);
  return ::getpid() == 1 || is_subreaper != 0;
}

void reap_adopted(const std::function<bool(pid_t)>& is_own) {
  // The kernel names one that has ended. If it is an own one, the next round goes on, when that is reaped.
  siginfo_t about{};
  while (::waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0 &&
         !is_own(about.si_pid)) {
    ::waitpid(about.si_pid, nullptr, 0);
    about = {};
  }
}

}  // namespace troupe
