#include "troupe/execution/edge_forms.hpp"

#include <stdexcept>
#include <string>

namespace troupe::execution {
namespace {

[[noreturn]] void refuse(const schedule::edge& passed, const std::string& expected, const std::string& got,
                         int microbatch) {
  throw std::logic_error("[stage_program] expected " + expected + " over edge " + to_string(passed) +
                         " (stage.output -> stage.input), got " + got + " for microbatch " +
                         std::to_string(microbatch));
}

std::string text_of(dtype type, const shape& extents) {
  return std::string(to_string(type)) + to_string(extents);
}

}  // namespace

void edge_forms::agree_on(const schedule::edge& passed, const tensor& activation, int microbatch) {
  if (!activation.defined()) refuse(passed, "a tensor", "an undefined one", microbatch);
  auto [at, is_new] = forms_.try_emplace(passed, form{activation.dtype(), activation.shape()});
  if (!is_new && !at->second.fits(activation))
    refuse(
        passed,
        text_of(at->second.type, at->second.extents) + ", as for the microbatches of this step before,",
        describe(activation) + ": make the form of the stage's outputs depend on that of its inputs alone,",
        microbatch);
}

void edge_forms::require_form(const schedule::edge& passed, const tensor& gradient, int microbatch) const {
  auto at = forms_.find(passed);
  if (!gradient.defined() || at == forms_.end() || at->second.fits(gradient)) return;
  refuse(passed,
         "a gradient " + text_of(at->second.type, at->second.extents) + ", like the tensor that came,",
         describe(gradient), microbatch);
}

}  // namespace troupe::execution
