#include "support/processes/system_v_segments.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace troupe::testing {

std::vector<system_v_segment> segments_of(uid_t user) {
  std::vector<system_v_segment> found;
  std::ifstream table("/proc/sysvipc/shm");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string key, permissions, size, creator, last, attachments;
    int id = 0;
    long owner = -1;
    fields >> key >> id >> permissions >> size >> creator >> last >> attachments >> owner;
    if (owner == static_cast<long>(user))
      found.push_back({id, static_cast<unsigned>(std::stoul(permissions, nullptr, 8))});
  }
  return found;
}

}  // namespace troupe::testing
