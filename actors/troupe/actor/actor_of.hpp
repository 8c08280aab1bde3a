#pragma once
#include <exception>
#include <optional>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/counted_actor.hpp"

namespace troupe::actors::actor {

/// An actor that is a state and a table of handlers: `State(self, args...)` and `State::make_behavior()`.
/// An exception from a handler ends the actor with the error of `error_from`. Its messages are counted.
/// `system.spawn<actor_of<device_state>, caf::detached>(options)`
template <class State>
class actor_of : public counted_actor {
 public:
  template <class... Args>
  explicit actor_of(caf::actor_config& config, Args&&... args) : counted_actor(config) {
    set_exception_handler([](std::exception_ptr& thrown) { return error_from(thrown); });
    state_.emplace(this, std::forward<Args>(args)...);
  }

  caf::behavior make_behavior() override { return state_->make_behavior(); }
  void on_exit() override { state_.reset(); }
  const char* name() const override { return State::actor_name; }

 private:
  std::optional<State> state_;
};

}  // namespace troupe::actors::actor
