#include "troupe/pipeline/detail/parameters/tied_gradients.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "troupe/wire/packed_state.hpp"

namespace troupe::detail {
namespace {

/// What a stage tells of a use that the step did not reach.
tensor no_gradient() { return tensor::zeros({}, dtype::u8); }
bool is_gradient(const tensor& shared) { return shared.dtype() == dtype::f32; }

}  // namespace

bool tied_gradients::has_shared() const { return std::ranges::any_of(weights_, &weight::in_several_stages); }

bool tied_gradients::is_use(const parameter& one) const {
  return std::ranges::any_of(weights_, [&](const weight& each) {
    return std::ranges::count(each.here, &one, &named_parameter::target) > 0;
  });
}

/// A weight of which no use has a gradient has none.
void tied_gradients::combine_own() {
  for (const auto& each : weights_) {
    if (each.in_several_stages) continue;
    for (std::size_t i = 1; i < each.here.size(); ++i) {
      auto& use = *each.here[i].target;
      if (use.has_gradient) add_gradient(*each.here.front().target, use.gradient());
      if (frees_gradients_) use.detach_gradient();
    }
  }
}

tensor tied_gradients::partial_gradients() {
  std::vector<named_tensor> gradients;
  for (const auto& each : weights_)
    if (each.in_several_stages)
      for (const auto& use : each.here)
        gradients.push_back(
            {use.name, use.target->has_gradient ? use.target->gradient().to({}) : no_gradient()});
  wire::packed_state_pool pool;  // without it, the memory is freed when all stages have added it
  auto packed = pack_state(gradients, pool);
  gradients.clear();
  for (const auto& each : weights_)
    if (each.in_several_stages && frees_gradients_)
      for (const auto& use : each.here) use.target->detach_gradient();
  return packed;
}

void tied_gradients::combine(const std::vector<tensor>& partials) {
  std::map<std::string, tensor> gradients;
  for (const auto& packed : partials)
    for (auto& [name, value] : wire::unpack_state(packed)) gradients.emplace(name, std::move(value));
  for (const auto& each : weights_) {
    if (!each.in_several_stages) continue;
    auto& first = *each.here.front().target;
    first.has_gradient = false;
    for (const auto& name : each.uses) {
      auto found = gradients.find(name);
      if (found == gradients.end()) throw std::runtime_error("no stage gave the gradient of " + name);
      if (is_gradient(found->second)) add_gradient(first, found->second.to(first.place()));
    }
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

void tied_gradients::detach_gradients() {
  for (const auto& each : weights_)
    for (const auto& use : each.here) use.target->detach_gradient();
}

void tied_gradients::mark_uses(const weight& shared) {
  for (std::size_t i = 1; i < shared.here.size(); ++i) shared.here[i].target->mark_stepped();
}

}  // namespace troupe::detail
