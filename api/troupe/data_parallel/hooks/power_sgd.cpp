#include "troupe/data_parallel/hooks/power_sgd.hpp"

#include <algorithm>

#include "troupe/data_parallel/detail/dense_reduction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/gradients/low_rank_factors.hpp"
#include "troupe/gradients/orthonormalize_columns.hpp"
#include "troupe/gradients/replica_sum.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {
namespace {

/// Two rounds: an all_reduce of the M_i Q and of the uncompressed parts, then one of the Q_i.
class factored_reduction : public bucket_reduction {
 public:
  factored_reduction(gradient_bucket& bucket, communicator& group, power_sgd_plan& plan,
                     std::vector<tensor> residuals);
  bool proceed() override;

 private:
  void begin_first_round();
  void begin_second_round();
  void finish();

  gradient_bucket& bucket_;
  communicator& group_;
  power_sgd_plan& plan_;
  std::vector<tensor> residuals_;  // E_i in the layout of leaves
  tensor first_, second_;          // what the rounds reduce
  bool is_finite_ = true;
  work round_;
};

factored_reduction::factored_reduction(gradient_bucket& bucket, communicator& group, power_sgd_plan& plan,
                                       std::vector<tensor> residuals)
    : bucket_(bucket), group_(group), plan_(plan), residuals_(std::move(residuals)) {
  begin_first_round();
}

/// Writes M_i over G_i in the leaf. E_i is replaced only after both rounds gave finite numbers.
void factored_reduction::begin_first_round() {
  for (const auto& part : plan_.factored) gradients::replace_zero_columns(part.q, part.begin);
  std::vector<tensor> of_replicas;
  for (std::size_t i = 0; i < bucket_.leaves.size(); ++i) {
    auto& own = of_replicas.emplace_back(tensor::empty({plan_.first_round_elements}));
    for (const auto& part : plan_.factored) {
      auto m = part.matrix_of(bucket_.leaves[i]);
      axpy(1, part.matrix_of(residuals_[i]), m);
      matmul_into(m, part.q, part.p_of(own), gradient_mode::assign);
    }
    for (const auto& part : plan_.dense) part.sent_of(own).copy_from(part.of(bucket_.leaves[i]));
  }
  first_ = of_replicas.empty() ? tensor::empty({plan_.first_round_elements}) : of_replicas.front();
  round_ = gradients::all_reduce_replicas(of_replicas, first_, *bucket_.replicas, group_);
}

void factored_reduction::begin_second_round() {
  std::vector<tensor> of_replicas;
  for (const auto& part : plan_.factored) {
    is_finite_ = is_finite_ && all_finite(std::vector<tensor>{part.p_of(first_)});
    gradients::orthonormalize_columns(part.p_of(first_));
  }
  for (std::size_t i = 0; i < bucket_.leaves.size(); ++i) {
    auto& own = of_replicas.emplace_back(tensor::empty({plan_.second_round_elements}));
    for (const auto& part : plan_.factored) {
      auto m = part.matrix_of(bucket_.leaves[i]);
      auto p = part.p_of(first_), q = part.q_of(own);
      matmul_into(m, p, q, gradient_mode::assign, {.transpose_a = true});
      if (!is_finite_) continue;
      matmul_into(negate(p), q, m, gradient_mode::accumulate, {.transpose_b = true});
      part.matrix_of(residuals_[i]).copy_from(m);
    }
  }
  second_ = of_replicas.empty() ? tensor::empty({plan_.second_round_elements}) : of_replicas.front();
  round_ = gradients::all_reduce_replicas(of_replicas, second_, *bucket_.replicas, group_);
}

void factored_reduction::finish() {
  for (auto& part : plan_.factored) {
    auto q = part.q_of(second_);
    if (is_finite_) part.q.copy_from(q);
    matmul_into(part.p_of(first_), q, part.matrix_of(bucket_.sum), gradient_mode::assign,
                {.transpose_b = true});
  }
  for (const auto& part : plan_.dense) part.of(bucket_.sum).copy_from(part.sent_of(first_));
}

bool factored_reduction::proceed() {
  round_.wait();
  if (!second_.defined()) {
    begin_second_round();
    return true;
  }
  finish();
  return false;
}

}  // namespace

power_sgd::power_sgd(const power_sgd_options& options) : options_(options) {
  if (options.rank < 1) throw_invalid("power_sgd", "rank >= 1", std::to_string(options.rank));
  if (!(options.min_compression_rate >= 1))
    throw_invalid("power_sgd", "min_compression_rate >= 1", std::to_string(options.min_compression_rate));
  if (options.dense_steps < 0)
    throw_invalid("power_sgd", "dense_steps >= 0", std::to_string(options.dense_steps));
}

void power_sgd::prepare(const std::vector<gradient_bucket>& buckets) {
  plans_.clear();
  for (const auto& each : buckets) {
    detail::require_on_cpu(each, "power_sgd");
    plans_.push_back(plan_power_sgd(each, options_));
  }
  auto is_factored = [this](const bucket_part& part) {
    return std::ranges::any_of(plans_, [&part](const power_sgd_plan& plan) {
      return std::ranges::any_of(plan.factored, [&part](const factored_part& each) {
        return each.part.parameter == part.parameter;
      });
    });
  };
  residuals_.prepare(buckets, is_factored);
}

std::unique_ptr<bucket_reduction> power_sgd::begin(gradient_bucket& bucket, communicator& group) {
  steps_.on_begin(bucket);
  auto& plan = plans_[static_cast<std::size_t>(bucket.index)];
  if (plan.factored.empty() || steps_.begun() <= options_.dense_steps)
    return detail::all_reduce_dense(bucket, group);
  std::vector<tensor> residuals;
  for (std::size_t i = 0; i < bucket.leaves.size(); ++i) residuals.push_back(residuals_.of(bucket, i));
  return std::make_unique<factored_reduction>(bucket, group, plan, std::move(residuals));
}

std::vector<named_tensor> power_sgd::state() {
  std::vector<named_tensor> result{{"power_sgd.steps", steps_.value()}};
  residuals_.add_state(result);
  for (const auto& plan : plans_)
    for (const auto& each : plan.factored) result.push_back({"power_sgd.q/" + each.part.parameter, each.q});
  return result;
}

}  // namespace troupe
