#include "troupe/nn/evaluation_scope.hpp"

#include <ranges>

namespace troupe::nn {

evaluation_scope::evaluation_scope(Module& module) { begin(module); }

evaluation_scope::evaluation_scope(const std::vector<std::shared_ptr<Module>>& modules) {
  for (const auto& each : modules) begin(*each);
}

// A module that is in two places was changed twice: its first mode comes last.
evaluation_scope::~evaluation_scope() {
  for (const auto& [module, was_training] : modes_ | std::views::reverse) module->training_ = was_training;
}

void evaluation_scope::begin(Module& module) {
  modes_.emplace_back(&module, module.training_);
  module.training_ = false;
  module.each_child([this](const std::string&, Module& child) { begin(child); });
}

}  // namespace troupe::nn
