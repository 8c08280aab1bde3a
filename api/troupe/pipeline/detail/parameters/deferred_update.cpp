#include "troupe/pipeline/detail/parameters/deferred_update.hpp"

#include <utility>

namespace troupe::detail {

class deferred_update::weight_update : public pending_update {
 public:
  weight_update(deferred_update& owner, std::size_t index) : owner_(owner), index_(index) {}

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
    updates_.push_back(std::make_shared<weight_update>(*this, index));
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

void deferred_update::begin(const program::stage_program::progress_callback& callback) {
  callback_ = callback;
  require_waits();
}

void deferred_update::require_waits() {
  for (const auto& each : updates_) each->set_pending(true);
}

void deferred_update::end() {
  callback_ = nullptr;
  for (const auto& each : updates_) each->set_pending(false);
}

void deferred_update::progress() {
  if (!callback_) return;
  auto call = callback_;  // it may be ended within
  call(false);
}

/// A weight whose step waits for all gradients has its new value when the update is complete.
void deferred_update::wait_for(std::size_t index) {
  progress();
  while (callback_ && !is_stepped_(index)) {
    auto call = callback_;
    call(true);
  }
}

}  // namespace troupe::detail
