#include "troupe/parallel/deferred_update.hpp"

#include <utility>

namespace troupe {

class deferred_update::one_update : public pending_update {
 public:
  one_update(deferred_update& owner, std::size_t index) : owner_(owner), index_(index) {}

 protected:
  void finish() override {
    owner_.wait_for(index_);
    set_pending(false);
  }

 private:
  deferred_update& owner_;
  std::size_t index_;
};

deferred_update::deferred_update(const std::vector<named_parameter>& parameters,
                                 const std::vector<tied_gradients::weight>& tied,
                                 std::function<bool(std::size_t index)> is_stepped)
    : is_stepped_(std::move(is_stepped)) {
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    auto* target = parameters[index].target;
    if (!target->requires_gradient) continue;
    updates_.push_back(std::make_shared<one_update>(*this, index));
    auto wait_here = [&](parameter& use) {
      use.set_update(updates_.back());
      uses_.push_back(&use);
    };
    wait_here(*target);
    for (const auto& weight : tied)
      if (weight.here.front().target == target)
        for (std::size_t i = 1; i < weight.here.size(); ++i) wait_here(*weight.here[i].target);
  }
}

deferred_update::~deferred_update() {
  for (auto* each : uses_) each->set_update(nullptr);
}

void deferred_update::begin(const stage_program::progress_callback& progress) {
  progress_ = progress;
  for (const auto& each : updates_) each->set_pending(true);
}

void deferred_update::end() {
  progress_ = nullptr;
  for (const auto& each : updates_) each->set_pending(false);
}

void deferred_update::go_on() {
  if (!progress_) return;
  auto progress = progress_;  // it may be ended within
  progress(false);
}

/// A weight whose step waits for all gradients has its new value when the update is complete.
void deferred_update::wait_for(std::size_t index) {
  go_on();
  while (progress_ && !is_stepped_(index)) {
    auto progress = progress_;
    progress(true);
  }
}

}  // namespace troupe
