#include "troupe/pipeline/detail/weight_versions.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/tensor/memory.hpp"

namespace troupe::detail {

void weight_versions::make_others() {
  memory_scope counted(memory_category::parameters);
  std::map<const std::byte*, tensor> other_of;
  for (auto* each : uses_) {
    const auto& value = each->value();
    auto [at, is_new] = other_of.try_emplace(value.bytes().data());
    if (is_new) at->second = tensor::empty(value.shape(), value.dtype(), value.device());
    auto& other = others_.emplace_back();
    other.name = each->name;
    other.extents = each->extents;
    other.tied_to = each->tied_to;
    other.value() = at->second;
  }
}

void weight_versions::begin_update() {
  if (others_.empty()) make_others();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    others_[i].value().copy_from(uses_[i]->value());
    others_[i].mark_changed();
  }
  exchange();
}

weight_versions::scope::scope(weight_versions& kept, std::uint64_t wanted) {
  auto newest = kept.newest_.value_or(wanted);
  if (newest == wanted) return;
  if (newest != wanted + 1)
    throw std::logic_error("[module_program] expected a microbatch with the weights after " +
                           std::to_string(newest) +
                           " optimizer steps or one less, got one with those after " +
                           std::to_string(wanted) + ": use a plan that check_plan finds nothing wrong with");
  exchanged_ = &kept;
  kept.exchange();
}

weight_versions::scope::~scope() {
  if (exchanged_) exchanged_->exchange();
}

/// Gradients stay where they are.
void weight_versions::exchange() noexcept {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    std::swap(*uses_[i], others_[i]);
    std::swap(uses_[i]->gradient(), others_[i].gradient());
    std::swap(uses_[i]->has_gradient, others_[i].has_gradient);
  }
}

}  // namespace troupe::detail
