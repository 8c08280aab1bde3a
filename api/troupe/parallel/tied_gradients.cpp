#include "troupe/parallel/tied_gradients.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "troupe/ops/elementwise.hpp"
#include "troupe/program/packed_state.hpp"

namespace troupe {
namespace {

/// The gradient of a use; zeros if the step did not reach it.
tensor gradient_of(const named_parameter& use) {
  if (!use.target->has_gradient) use.target->gradient().fill_zero();
  return use.target->gradient();
}

}  // namespace

bool tied_gradients::has_shared() const { return std::ranges::any_of(weights_, &weight::in_several_stages); }

bool tied_gradients::is_use(const parameter& one) const {
  return std::ranges::any_of(weights_, [&](const weight& each) {
    return std::ranges::count(each.here, &one, &named_parameter::target) > 0;
  });
}

void tied_gradients::combine_own() {
  for (const auto& each : weights_) {
    if (each.in_several_stages) continue;
    auto sum = gradient_of(each.here.front());
    for (std::size_t i = 1; i < each.here.size(); ++i) axpy(1, gradient_of(each.here[i]), sum);
    each.here.front().target->has_gradient = true;
  }
}

tensor tied_gradients::share() {
  std::vector<named_tensor> gradients;
  for (const auto& each : weights_)
    if (each.in_several_stages)
      for (const auto& use : each.here) gradients.push_back({use.name, gradient_of(use).to({})});
  packed_state_pool pool;  // without it, the memory is freed when all stages have added it
  return pack_state(gradients, pool);
}

void tied_gradients::combine(const std::vector<tensor>& shares) {
  std::map<std::string, tensor> gradients;
  for (const auto& packed : shares)
    for (auto& [name, value] : unpack_state(packed)) gradients.emplace(name, std::move(value));
  for (const auto& each : weights_) {
    if (!each.in_several_stages) continue;
    auto& first = *each.here.front().target;
    for (const auto& name : each.uses) {
      auto found = gradients.find(name);
      if (found == gradients.end()) throw std::runtime_error("no stage gave the gradient of " + name);
      if (&name == &each.uses.front())
        first.gradient().copy_from(found->second);
      else
        axpy(1, found->second.to(first.gradient().device()), first.gradient());
    }
    first.has_gradient = true;
  }
}

void tied_gradients::mark_stepped() {
  for (const auto& each : weights_)
    if (!is_marked_.contains(each.here.front().target)) mark_uses(each);
  is_marked_.clear();
}

void tied_gradients::mark_stepped(const parameter& first) {
  for (const auto& each : weights_)
    if (each.here.front().target == &first && is_marked_.insert(&first).second) mark_uses(each);
}

void tied_gradients::mark_uses(const weight& of) {
  for (std::size_t i = 1; i < of.here.size(); ++i) of.here[i].target->mark_stepped();
}

}  // namespace troupe
