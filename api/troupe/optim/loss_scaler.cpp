#include "troupe/optim/loss_scaler.hpp"

#include <algorithm>
#include <cmath>

#include "troupe/ops/copy_by_name.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/optim/detail/gradients_of.hpp"
#include "troupe/optim/detail/moment_state.hpp"

namespace troupe::optim {
loss_scaler::loss_scaler(loss_scaler_options options)
    : options_(options),
      scale_(tensor::full({}, static_cast<float>(options.initial_scale))),
      good_steps_(tensor::zeros({}, dtype::i64)),
      skipped_steps_(tensor::zeros({}, dtype::i64)) {
  auto initial = static_cast<float>(options.initial_scale);
  detail::require_option("loss_scaler", initial > 0 && std::isfinite(initial),
                         "initial_scale > 0 that f32 can hold", options.initial_scale);
  detail::require_option("loss_scaler", options.growth_factor > 1 && std::isfinite(options.growth_factor),
                         "growth_factor > 1 and finite", options.growth_factor);
  detail::require_option("loss_scaler", options.backoff_factor > 0 && options.backoff_factor < 1,
                         "backoff_factor in (0, 1)", options.backoff_factor);
  auto least = static_cast<float>(options.least_scale);
  detail::require_option("loss_scaler", least > 0 && std::isfinite(least),
                         "least_scale > 0 that f32 can hold", options.least_scale);
  detail::require_option("loss_scaler", options.growth_interval >= 1, "growth_interval >= 1",
                         static_cast<double>(options.growth_interval));
}

/// A state that was saved before there was a least scale may be below it.
double loss_scaler::scale() const { return std::max(scale_.values<float>()[0], least_scale()); }

float loss_scaler::least_scale() const {
  return static_cast<float>(std::min(options_.least_scale, options_.initial_scale));
}

bool loss_scaler::is_least() const { return scale() <= least_scale(); }

bool loss_scaler::unscale_and_check(std::span<parameter* const> parameters) const {
  auto is_finite = scale_all(detail::gradients_of(parameters), 1 / scale());
  if (!is_finite) drop_gradients(parameters);
  return is_finite;
}

void loss_scaler::update(bool was_finite) {
  auto& scale = scale_.values<float>()[0];
  auto& good_steps = good_steps_.values<std::int64_t>()[0];
  if (!was_finite) {
    scale = std::max(scale * static_cast<float>(options_.backoff_factor), least_scale());
    good_steps = 0;
    ++skipped_steps_.values<std::int64_t>()[0];
  } else if (++good_steps >= options_.growth_interval) {
    auto grown = static_cast<float>(this->scale()) * static_cast<float>(options_.growth_factor);
    if (std::isfinite(grown)) scale = grown;
    good_steps = 0;
  }
}

std::uint64_t loss_scaler::num_skipped() const {
  return static_cast<std::uint64_t>(skipped_steps_.values<std::int64_t>()[0]);
}

std::vector<named_tensor> loss_scaler::state() const {
  return {{"loss_scaler/scale", scale_},
          {"loss_scaler/good_steps", good_steps_},
          {"loss_scaler/skipped_steps", skipped_steps_}};
}

void loss_scaler::load_state(const std::vector<named_tensor>& saved) { copy_by_name(state(), saved); }

void drop_gradients(std::span<parameter* const> parameters) {
  for (auto* each : parameters) each->has_gradient = false;
}

}  // namespace troupe::optim
