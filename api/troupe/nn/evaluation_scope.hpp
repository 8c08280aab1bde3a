#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// While it lives, the modules and all within them are in evaluation mode; afterwards each has the mode again
/// that it had before, also those that were put into evaluation mode by themselves.
///
///     {
///       nn::evaluation_scope evaluating(model);
///       no_grad nothing_recorded;
///       auto logits = model(samples);
///     }
///
/// The modules outlive it. Not for modules that another thread uses.
class evaluation_scope {
 public:
  explicit evaluation_scope(Module& module);
  explicit evaluation_scope(const std::vector<std::shared_ptr<Module>>& modules);
  ~evaluation_scope();
  evaluation_scope(const evaluation_scope&) = delete;
  evaluation_scope& operator=(const evaluation_scope&) = delete;

 private:
  void begin(Module& module);

  std::vector<std::pair<Module*, bool>> modes_;  ///< in the order in which they were changed
};

}  // namespace troupe::nn
