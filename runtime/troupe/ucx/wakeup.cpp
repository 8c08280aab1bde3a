#include "troupe/ucx/wakeup.hpp"

#include <poll.h>

#include <thread>

namespace troupe::ucx {
namespace {

constexpr auto patient_poll = std::chrono::microseconds(500);
constexpr auto poll_step = std::chrono::milliseconds(1);

}  // namespace

void wakeup::sleep(std::array<int, 2> descriptors, std::chrono::milliseconds at_most) {
  std::array<pollfd, 3> waited = {pollfd{event_.fd(), POLLIN, 0}, pollfd{descriptors[0], POLLIN, 0},
                                  pollfd{descriptors[1], POLLIN, 0}};
  ::poll(waited.data(), waited.size(),
         static_cast<int>(at_most.count()));  // if interrupted, the caller checks again
  sleeping_ = false;
  if ((waited[0].revents & POLLIN) != 0) event_.clear();
}

void wakeup::rest(std::array<int, 2> descriptors, bool armed, std::chrono::nanoseconds idle,
                  std::chrono::milliseconds at_most) {
  if (armed) return sleep(descriptors, at_most);
  if (idle > patient_poll) return sleep(descriptors, poll_step);
  cancel_sleep();
  std::this_thread::yield();
}

void wakeup::wake() {
  if (sleeping_ && sleeping_.exchange(false)) event_.set();
}

}  // namespace troupe::ucx
