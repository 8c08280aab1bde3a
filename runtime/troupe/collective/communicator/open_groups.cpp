#include "troupe/collective/communicator/open_groups.hpp"

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::collective {

void open_groups::add(const communicator& begun) {
  std::lock_guard lock(mutex_);
  groups_.insert(&begun);
}

void open_groups::remove(const communicator& ended) {
  std::lock_guard lock(mutex_);
  groups_.erase(&ended);
}

std::vector<collective_position> open_groups::positions() const {
  std::lock_guard lock(mutex_);
  std::vector<collective_position> all;
  for (const auto* each : groups_) all.push_back(each->position());
  return all;
}

}  // namespace troupe::collective
