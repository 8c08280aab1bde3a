#include "troupe/files/file_size_limit.hpp"

#include <csignal>

namespace troupe::files {

void ignore_file_size_signal() {
  struct sigaction current {};
  if (::sigaction(SIGXFSZ, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
    std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace troupe::files
