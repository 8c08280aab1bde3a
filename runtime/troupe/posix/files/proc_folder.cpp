#include "troupe/posix/files/proc_folder.hpp"

#include <unistd.h>

#include <array>
#include <charconv>

namespace troupe::posix {

bool proc_is_of_this_namespace() {
  std::array<char, 24> text;
  auto size = ::readlink("/proc/self", text.data(), text.size());
  if (size <= 0) return false;
  pid_t shown = 0;
  auto parsed = std::from_chars(text.data(), text.data() + size, shown);
  return parsed.ec == std::errc() && shown == ::getpid();
}

}  // namespace troupe::posix
