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

std::int64_t num_largest(double fraction, std::int64_t count) {
  auto wanted = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(count)));
  return std::clamp<std::int64_t>(wanted, 1, count);
}

tensor take_largest(const tensor& gradient, tensor residual, std::int64_t k) {
  bool is_finite = all_finite(std::span(&gradient, 1));
  if (is_finite) axpy(1, gradient, residual);
  auto unsent = residual.values<float>();
  auto message = tensor::empty({2 * k}, dtype::i32);
  auto words = message.values<std::int32_t>();
  std::size_t next = 0;
  for (auto index : largest_magnitudes(unsent, static_cast<std::size_t>(k))) {
    auto& value = unsent[static_cast<std::size_t>(index)];
    auto sent = is_finite ? value : std::numeric_limits<float>::quiet_NaN();
    words[next] = index;
    words[static_cast<std::size_t>(k) + next++] = std::bit_cast<std::int32_t>(sent);
    if (is_finite) value = 0;
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

sparse_gradient::sparse_gradient(double fraction, const shape& extents, std::string parameter)
    : fraction_(fraction), parameter_(std::move(parameter)), residual_(tensor::zeros(extents)) {}

tensor sparse_gradient::message_of(const gradient_part& part, const tensor& gradient) {
  if (!gradient.defined()) return nothing_largest();
  auto residual = residual_.reshape({residual_.num_elements()}).rows(part.first, part.count);
  return take_largest(gradient, residual, num_largest(fraction_, part.count));
}

std::vector<tensor> sparse_gradient::sums_from(const gradient_part& part,
                                               const std::vector<tensor>& received) {
  return {sum_of_largest(received, part.count)};
}

std::vector<named_tensor> sparse_gradient::state() const {
  return {{"top_k.residual/" + parameter_, residual_}};
}

}  // namespace troupe::gradients
