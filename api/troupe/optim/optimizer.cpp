#include "troupe/optim/optimizer.hpp"

#include <algorithm>
#include <utility>

#include "troupe/contents/step_counts.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::optim {

std::vector<named_tensor> with_step_counts(std::vector<named_tensor> saved,
                                           const std::vector<named_tensor>& state) {
  auto counts = [](const named_tensor& each) { return is_step_count(whole_contents(each)); };
  if (std::ranges::any_of(saved, counts)) return saved;
  for (const auto& each : state)
    if (counts(each)) saved.push_back({each.name, tensor::from(std::vector{unknown_steps}, {})});
  return saved;
}

void optimizer_state::load_state(const std::vector<named_tensor>& saved) {
  auto own = state();
  copy_by_name(own, with_step_counts(saved, own));
}

std::unique_ptr<optimizer_state> make_state(const Optimizer& optimizer,
                                            std::vector<named_parameter> parameters) {
  auto state = optimizer(std::move(parameters));
  if (!state)
    throw bad_input(
        "the optimizer: expected a function that returns an optimizer_state for the parameters it gets, got "
        "one that returns null");
  return state;
}

}  // namespace troupe::optim
