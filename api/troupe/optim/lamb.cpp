#include "troupe/optim/lamb.hpp"

#include <utility>

#include "troupe/ops/lamb_step.hpp"
#include "troupe/optim/detail/moment_state.hpp"

namespace troupe::optim {

LAMB::LAMB(lamb_options options) : options_(options) { detail::require_moment_options("LAMB", options); }

std::unique_ptr<optimizer_state> LAMB::operator()(std::vector<named_parameter> parameters) const {
  lamb_step_options fixed{options_.lr, options_.beta1, options_.beta2, options_.eps, options_.weight_decay};
  auto step_all = [fixed](std::span<const adam_slot> slots, std::uint64_t step, double rate_factor) {
    auto scheduled = fixed;
    scheduled.learning_rate *= rate_factor;
    lamb_step(slots, step, scheduled);
  };
  return std::make_unique<detail::moment_state>(step_all, detail::moment_state::update_kind::whole_tensor,
                                                options_.schedule, std::move(parameters));
}

}  // namespace troupe::optim
