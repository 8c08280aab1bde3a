#include "troupe/usage/output_problem.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace troupe::usage {

std::string output_problem() {
  errno = 0;
  if (std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  auto text = std::string("cannot write to standard output, results are missing");
  return errno == 0 ? text : text + ": " + std::strerror(errno);
}

}  // namespace troupe::usage
