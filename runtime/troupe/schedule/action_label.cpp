#include "troupe/schedule/action_label.hpp"

#include <algorithm>

namespace troupe {

bool several_stages(const std::vector<timed_action>& device) {
  return std::any_of(device.begin(), device.end(), [&device](const timed_action& done) {
    return done.what.stage != device.front().what.stage;
  });
}

std::string fitting_label(const action& what, label_room room) {
  auto whole = to_string(what);
  if (whole.size() <= room.whole) return whole;
  auto number = std::to_string(what.microbatch);
  return number.size() <= room.number ? number : "";
}

bool is_odd(const action& what, bool with_stage) {
  return (with_stage ? what.stage : what.microbatch) % 2 != 0;
}

}  // namespace troupe
