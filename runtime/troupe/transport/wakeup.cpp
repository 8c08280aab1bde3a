#include "troupe/transport/wakeup.hpp"

#include <poll.h>

namespace troupe {

void wakeup::sleep(std::array<int, 2> descriptors, std::chrono::milliseconds at_most) {
  std::array<pollfd, 3> waited = {pollfd{event_.fd(), POLLIN, 0}, pollfd{descriptors[0], POLLIN, 0},
                                  pollfd{descriptors[1], POLLIN, 0}};
  ::poll(waited.data(), waited.size(),
         static_cast<int>(at_most.count()));  // interrupted: the caller looks again
  sleeping_ = false;
  if ((waited[0].revents & POLLIN) != 0) event_.clear();
}

void wakeup::wake() {
  if (sleeping_.exchange(false)) event_.set();
}

}  // namespace troupe
