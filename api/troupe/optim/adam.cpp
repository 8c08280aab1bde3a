#include "troupe/optim/adam.hpp"

#include <utility>

#include "troupe/optim/detail/moment_state.hpp"

namespace troupe::optim {
namespace {

template <class Options>
std::unique_ptr<optimizer_state> make_state(const Options& options, bool decoupled,
                                            std::vector<named_parameter> parameters) {
  adam_step_options fixed{options.lr,  options.beta1,        options.beta2,
                          options.eps, options.weight_decay, decoupled};
  auto step_all = [fixed](std::span<const adam_slot> slots, std::uint64_t step, double rate_factor) {
    auto scheduled = fixed;
    scheduled.learning_rate *= rate_factor;
    adam_step(slots, step, scheduled);
  };
  return std::make_unique<detail::moment_state>(step_all, detail::moment_state::update_kind::elementwise,
                                                options.schedule, std::move(parameters));
}

}  // namespace

Adam::Adam(adam_options options) : options_(options) { detail::require_moment_options("Adam", options); }

std::unique_ptr<optimizer_state> Adam::operator()(std::vector<named_parameter> parameters) const {
  return make_state(options_, false, std::move(parameters));
}

AdamW::AdamW(adamw_options options) : options_(options) { detail::require_moment_options("AdamW", options); }

std::unique_ptr<optimizer_state> AdamW::operator()(std::vector<named_parameter> parameters) const {
  return make_state(options_, true, std::move(parameters));
}

}  // namespace troupe::optim
