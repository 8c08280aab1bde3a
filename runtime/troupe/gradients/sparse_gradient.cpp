#include "troupe/gradients/sparse_gradient.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/gradients/largest_magnitudes.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe::gradients {
namespace {

/// Residuals become zero, velocities are kept as in an optimizer. A gradient that is not finite is sent as it
/// is.
void send_whole(tensor gradient, const unsent_gradient& unsent) {
  if (!all_finite(std::span(&gradient, 1))) return;
  unsent.add(gradient);
  auto residual = unsent.residual;
  gradient.copy_from(residual);
  residual.fill_zero();
}

}  // namespace

std::int64_t num_largest(double fraction, std::int64_t count) {
  auto wanted = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(count)));
  return std::clamp<std::int64_t>(wanted, 1, count);
}

void unsent_gradient::add(const tensor& gradient) const {
  if (velocity.defined()) {
    scale(velocity, momentum);
    axpy(1, gradient, velocity);
  }
  axpy(1, velocity.defined() ? velocity : gradient, residual);
}

tensor take_largest(const tensor& gradient, const unsent_gradient& unsent, std::int64_t k) {
  bool is_finite = all_finite(std::span(&gradient, 1));
  if (is_finite) unsent.add(gradient);
  auto residual = unsent.residual, velocity = unsent.velocity;
  auto values = residual.values<float>();
  auto velocities =
      velocity.defined() && k < residual.num_elements() ? velocity.values<float>() : std::span<float>();
  auto message = tensor::empty({2 * k}, dtype::i32);
  auto words = message.values<std::int32_t>();
  std::size_t next = 0;
  for (auto index : largest_magnitudes(values, static_cast<std::size_t>(k))) {
    auto& value = values[static_cast<std::size_t>(index)];
    auto sent = is_finite ? value : std::numeric_limits<float>::quiet_NaN();
    words[next] = index;
    words[static_cast<std::size_t>(k) + next++] = std::bit_cast<std::int32_t>(sent);
    if (!is_finite) continue;
    value = 0;
    if (!velocities.empty()) velocities[static_cast<std::size_t>(index)] = 0;
  }
  return message;
}

tensor nothing_largest() { return tensor::zeros({2}, dtype::i32); }

tensor sum_of_largest(const std::vector<tensor>& messages, std::int64_t n) {
  auto result = tensor::zeros({n});
  auto sum = result.values<float>();
  for (const auto& message : messages) {
    auto words = message.values<std::int32_t>();
    auto k = words.size() / 2;
    for (std::size_t i = 0; i < k; ++i) {
      if (words[i] < 0 || words[i] >= n || words.size() % 2 != 0)
        throw std::logic_error("[sum_of_largest] expected indices below " + std::to_string(n) +
                               " and as many values, got " + describe(message) + " with index " +
                               std::to_string(words[i]));
      sum[static_cast<std::size_t>(words[i])] += std::bit_cast<float>(words[k + i]);
    }
  }
  return result;
}

sparse_gradient::sparse_gradient(double fraction, const shape& extents, std::string parameter,
                                 double momentum)
    : fraction_(fraction),
      parameter_(std::move(parameter)),
      unsent_{.residual = tensor::zeros(extents),
              .velocity = momentum > 0 ? tensor::zeros(extents) : tensor(),
              .momentum = static_cast<float>(momentum)} {}

unsent_gradient sparse_gradient::unsent_of(std::int64_t first, std::int64_t count) const {
  auto elements_of = [&](const tensor& whole) {
    return whole.defined() ? whole.reshape({whole.num_elements()}).rows(first, count) : tensor();
  };
  return {elements_of(unsent_.residual), elements_of(unsent_.velocity), unsent_.momentum};
}

tensor sparse_gradient::message_of(const gradient_part& part, const tensor& gradient) {
  auto unsent = unsent_of(part.first, part.count);
  if (sends_all()) {
    if (!gradient.defined()) return tensor::zeros({part.count});
    send_whole(gradient, unsent);
    return gradient;
  }
  if (!gradient.defined()) return nothing_largest();
  return take_largest(gradient, unsent, num_largest(fraction_, part.count));
}

std::vector<tensor> sparse_gradient::sums_from(const gradient_part& part,
                                               const std::vector<tensor>& received) {
  if (sends_all()) return received;
  return {sum_of_largest(received, part.count)};
}

void sparse_gradient::prepare_uncompressed(tensor gradient) {
  send_whole(gradient, unsent_of(0, gradient.num_elements()));
}

std::vector<named_tensor> sparse_gradient::state() const {
  std::vector<named_tensor> result{{"top_k.residual/" + parameter_, unsent_.residual}};
  if (unsent_.velocity.defined()) result.push_back({"top_k.velocity/" + parameter_, unsent_.velocity});
  return result;
}

}  // namespace troupe::gradients
