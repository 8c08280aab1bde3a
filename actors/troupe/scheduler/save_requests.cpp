#include "troupe/scheduler/save_requests.hpp"

#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"

namespace troupe::actors::scheduler {

bool save_requests::has_unplanned() const {
  return std::ranges::any_of(requests_, [](const request& one) { return !one.planned; });
}

void save_requests::plan(std::uint64_t step) {
  for (auto& one : requests_)
    if (!one.planned) one.planned = step;
}

void save_requests::on_disk(std::uint64_t step) {
  std::erase_if(requests_, [&](request& one) {
    if (step < one.planned.value_or(one.position)) return false;
    one.answer.deliver(messages::snapshot_saved{step});
    return true;
  });
}

void save_requests::on_failed(std::uint64_t step, const std::string& why) {
  std::erase_if(requests_, [&](request& one) {
    if (one.planned != step) return false;
    one.answer.deliver(make_error(actor::actor_error::failed, "the snapshot of step " + std::to_string(step) +
                                                                  " could not be written: " + why));
    return true;
  });
}

void save_requests::refuse_all(const std::string& why) {
  for (auto& one : std::exchange(requests_, {})) one.answer.deliver(actor::unavailable(why));
}

}  // namespace troupe::actors::scheduler
