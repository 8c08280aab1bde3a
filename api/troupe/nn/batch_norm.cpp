#include "troupe/nn/batch_norm.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/nn/detail/replica_scope.hpp"
#include "troupe/nn/init.hpp"

namespace troupe::nn {

BatchNorm2d::BatchNorm2d(std::int64_t features, batch_norm_options options)
    : options_(options),
      weight_("weight", {features}, init::constant(1)),
      bias_("bias", {features}, nullptr),
      running_mean_("running_mean", {features}, 0),
      running_variance_("running_var", {features}, 1) {}

variable BatchNorm2d::forward(const variable& input) {
  if (!is_training())
    return batch_norm_inference(input, weight_, bias_, running_mean_.value, running_variance_.value,
                                options_);
  auto moves = !current_pass().is_recomputed;
  auto mean = moves ? running_mean_.value : tensor(), variance = moves ? running_variance_.value : tensor();
  if (sum_statistics_)
    return synced_batch_norm(input, weight_, bias_, mean, variance, options_, sum_statistics_);
  return batch_norm(input, weight_, bias_, mean, variance, options_);
}

void BatchNorm2d::synchronize_statistics(sum_over_members sum) {
  statistics_of_ = statistics_of::group;
  sum_statistics_ = std::move(sum);
}

void BatchNorm2d::synchronize_over_replicas() {
  statistics_of_ = statistics_of::replicas;
  sum_statistics_ = detail::add_up_over_replicas;
}

void BatchNorm2d::each_parameter(const parameter_visitor& visit) {
  visit(weight_);
  visit(bias_);
}

void BatchNorm2d::each_buffer(const buffer_visitor& visit) {
  visit(running_mean_);
  visit(running_variance_);
}

}  // namespace troupe::nn
