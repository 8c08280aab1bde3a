#include "troupe/pipeline/detail/agreement/training_settings.hpp"

#include "troupe/error/type_name.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/mse_loss.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/detail/number_text.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"
#include "troupe/pipeline/detail/agreement/function_fingerprint.hpp"

namespace troupe::detail {
namespace {

using optim::detail::number_text;
using named_values = std::vector<std::pair<std::string, std::string>>;

std::string schedule_text(const optim::lr_schedule& schedule) {
  auto text = optim::text_of(schedule);
  return text.empty() ? "a function, tried: " + fingerprint(schedule) : text;
}

template <class Options>
named_values moment_settings(const char* kind, const Options& options) {
  return {{"optimizer", kind},
          {"optimizer lr", number_text(options.lr)},
          {"optimizer beta1", number_text(options.beta1)},
          {"optimizer beta2", number_text(options.beta2)},
          {"optimizer eps", number_text(options.eps)},
          {"optimizer weight_decay", number_text(options.weight_decay)},
          {"optimizer schedule", schedule_text(options.schedule)}};
}

named_values settings_of(const optim::sgd_options& options) {
  return {{"optimizer", options.momentum == 0 ? "SGD" : "SGD with momentum"},
          {"optimizer lr", optim::detail::number_text(options.lr)},
          {"optimizer momentum", optim::detail::number_text(options.momentum)},
          {"optimizer weight_decay", optim::detail::number_text(options.weight_decay)},
          {"optimizer nesterov", options.nesterov ? "true" : "false"},
          {"optimizer schedule", schedule_text(options.schedule)}};
}

named_values settings_of(const optim::Optimizer& optimizer) {
  if (const auto* adam = optimizer.target<optim::Adam>()) return moment_settings("Adam", adam->options());
  if (const auto* adamw = optimizer.target<optim::AdamW>()) return moment_settings("AdamW", adamw->options());
  if (const auto* lamb = optimizer.target<optim::LAMB>()) return moment_settings("LAMB", lamb->options());
  if (const auto* sgd = optimizer.target<optim::SGD>()) return settings_of(sgd->options());
  return {{"optimizer", "a function of the program's own"},
          {"optimizer function", type_name(optimizer.target_type()) + ", tried: " + fingerprint(optimizer)}};
}

named_values settings_of(const nn::Loss& loss) {
  if (const auto* entropy = loss.target<nn::CrossEntropy>())
    return {{"loss", "CrossEntropy"},
            {"loss label_smoothing", optim::detail::number_text(entropy->options().label_smoothing)},
            {"loss ignore_index", std::to_string(entropy->options().ignore_index)}};
  if (loss.target<nn::MSELoss>()) return {{"loss", "MSELoss"}};
  return {{"loss", type_name(loss.target_type()) + ", tried: " + fingerprint(loss)}};
}

}  // namespace

named_values training_settings(const optim::Optimizer& optimizer, const nn::Loss& loss) {
  auto settings = settings_of(optimizer);
  for (auto& each : settings_of(loss)) settings.push_back(std::move(each));
  return settings;
}

}  // namespace troupe::detail
