#include "troupe/gradients/factored_gradient.hpp"

#include <span>
#include <utility>

#include "troupe/gradients/orthonormalize_columns.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe::gradients {
namespace {

tensor as_list(const tensor& factor) { return factor.reshape({factor.num_elements()}); }

}  // namespace

factored_gradient::factored_gradient(const low_rank_factors& factors, const std::string& parameter,
                                     std::uint64_t seed, tensor q)
    : factors_(factors),
      parameter_(parameter),
      initial_q_(initial_q(factors, seed, parameter)),
      residual_(tensor::zeros({factors.rows, factors.columns})),
      q_(q.defined() ? std::move(q) : tensor::empty(initial_q_.shape())) {
  q_.copy_from(initial_q_);
}

tensor factored_gradient::message_of(const gradient_part& part, const tensor& gradient) {
  if (part.round == 0) return first_factor(gradient);
  return has_first_sum() ? second_factor() : tensor();
}

std::vector<tensor> factored_gradient::sums_from(const gradient_part& part,
                                                 const std::vector<tensor>& received) {
  if (part.round == 1) return {finish(received)};
  take_first_sum(received);
  return {};
}

std::vector<named_tensor> factored_gradient::state() const {
  return {{"power_sgd.residual/" + parameter_, residual_}};
}

std::vector<named_tensor> factored_gradient::shared_state() const {
  return {{"power_sgd.q/" + parameter_, q_}};
}

tensor factored_gradient::first_factor(const tensor& gradient) {
  replace_zero_columns(q_, initial_q_);
  auto p = tensor::zeros({factors_.rows, factors_.rank});
  if (gradient.defined()) {
    m_ = gradient.reshape({factors_.rows, factors_.columns});
    axpy(1, residual_, m_);
    matmul_into(m_, q_, p, gradient_mode::assign);
  }
  return as_list(p);
}

void factored_gradient::take_first_sum(const std::vector<tensor>& parts) {
  p_ = concat(parts, 0).reshape({factors_.rows, factors_.rank});
  is_finite_ = all_finite(std::span(&p_, 1));
  orthonormalize_columns(p_);
}

tensor factored_gradient::second_factor() {
  own_second_ = tensor::zeros({factors_.columns, factors_.rank});
  if (m_.defined()) matmul_into(m_, p_, own_second_, gradient_mode::assign, {.transpose_a = true});
  return as_list(own_second_);
}

tensor factored_gradient::finish(const std::vector<tensor>& parts) {
  auto sum_of_second = concat(parts, 0).reshape({factors_.columns, factors_.rank});
  keep_unsent(sum_of_second);
  auto sum = tensor::empty({factors_.rows, factors_.columns});
  matmul_into(p_, sum_of_second, sum, gradient_mode::assign, {.transpose_b = true});
  discard();
  return as_list(sum);
}

/// E_i = M_i - P Q_i'.
void factored_gradient::keep_unsent(const tensor& sum_of_second) {
  if (!is_finite_ || !all_finite(std::span(&sum_of_second, 1))) return;
  q_.copy_from(sum_of_second);
  if (!m_.defined()) return;
  matmul_into(negate(p_), own_second_, m_, gradient_mode::accumulate, {.transpose_b = true});
  residual_.copy_from(m_);
}

void factored_gradient::discard() {
  m_ = p_ = own_second_ = {};
  is_finite_ = true;
}

}  // namespace troupe::gradients
