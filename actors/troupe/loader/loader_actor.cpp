#include "troupe/loader/loader_actor.hpp"

#include <algorithm>

#include "troupe/messages/device.hpp"

namespace troupe::actors::loader {
namespace {

constexpr std::size_t kept_batches = 4;  // of each replica that runs another one

}  // namespace

loader_state::loader_state(caf::event_based_actor* self, std::vector<std::shared_ptr<batch_source>> sources,
                           std::shared_ptr<loader_status> status, const fault::fault_plan* faults)
    : self_(self), sources_(std::move(sources)), status_(std::move(status)), faults_(faults) {}

caf::behavior loader_state::make_behavior() {
  return {[this](const messages::add_source& added) { sources_.push_back(added.source); },
          [this](const messages::want_batch& wanted) { on_want_batch(wanted); }};
}

void loader_state::on_want_batch(const messages::want_batch& wanted) {
  auto found = std::ranges::find_if(recent_, [&](const made& one) {
    return one.call == wanted.call && one.source == wanted.source && one.step == wanted.step;
  });
  if (found == recent_.end()) {
    while (recent_.size() >= kept_batches * wanted.num_at_once) recent_.pop_front();
    recent_.push_back({wanted.call, wanted.source, wanted.step, read(wanted)});
    found = std::prev(recent_.end());
  }
  self_->send(caf::actor_cast<caf::actor>(self_->current_sender()),
              messages::batch_ready{wanted.call, wanted.source, wanted.step, found->samples});
}

/// Publishes in the status that the loader is in a dataset's code. After an exception the status stays so:
/// the actor ends, and its replacement has a new status.
batch loader_state::read(const messages::want_batch& wanted) {
  status_->begin();
  if (faults_) faults_->at(fault::fault_point::load, wanted.step);
  auto samples = sources_.at(wanted.source)->at(wanted.step);
  status_->end();
  return samples;
}

}  // namespace troupe::actors::loader
