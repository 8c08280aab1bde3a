#include "troupe/optim/adam.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/ops/adam_step.hpp"

namespace troupe::optim {
namespace {

/// One parameter's running means of gradients and of their squares.
struct moments {
  tensor exp_avg, exp_avg_sq;
};

class adam_state : public optimizer_state {
 public:
  adam_state(const adam_step_options& options, lr_schedule schedule, std::vector<named_parameter> parameters)
      : options_(options), schedule_(std::move(schedule)), parameters_(std::move(parameters)) {
    for (const auto& each : parameters_) {
      const auto& extents = each.target->value.extents();
      moments_.push_back({tensor::zeros(extents), tensor::zeros(extents)});
    }
  }

  void apply(std::uint64_t step) override {
    auto options = options_;
    if (schedule_) options.learning_rate *= schedule_(step);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& each = *parameters_[i].target;
      if (!each.has_gradient) continue;
      adam_step(each.value, each.gradient, moments_[i].exp_avg, moments_[i].exp_avg_sq, step, options);
      each.stepped();
    }
  }

  std::vector<named_tensor> state() const override {
    std::vector<named_tensor> result;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      result.push_back({parameters_[i].name + "/exp_avg", moments_[i].exp_avg});
      result.push_back({parameters_[i].name + "/exp_avg_sq", moments_[i].exp_avg_sq});
    }
    return result;
  }

 private:
  adam_step_options options_;
  lr_schedule schedule_;
  std::vector<named_parameter> parameters_;
  std::vector<moments> moments_;
};

template <class Options>
void check_options(const char* where, const Options& options) {
  auto require = [&where](bool is_good, const char* expected, double got) {
    if (!is_good) throw_invalid(where, expected, std::to_string(got));
  };
  require(options.lr >= 0, "lr >= 0", options.lr);
  require(options.beta1 >= 0 && options.beta1 < 1, "beta1 in [0, 1)", options.beta1);
  require(options.beta2 >= 0 && options.beta2 < 1, "beta2 in [0, 1)", options.beta2);
  require(options.eps >= 0, "eps >= 0", options.eps);
  require(options.weight_decay >= 0, "weight_decay >= 0", options.weight_decay);
}

template <class Options>
std::unique_ptr<optimizer_state> make_state(const Options& options, bool decoupled,
                                            std::vector<named_parameter> parameters) {
  adam_step_options step{options.lr,  options.beta1,        options.beta2,
                         options.eps, options.weight_decay, decoupled};
  return std::make_unique<adam_state>(step, options.schedule, std::move(parameters));
}

}  // namespace

Adam::Adam(adam_options options) : options_(options) { check_options("Adam", options); }

std::unique_ptr<optimizer_state> Adam::operator()(std::vector<named_parameter> parameters) const {
  return make_state(options_, false, std::move(parameters));
}

AdamW::AdamW(adamw_options options) : options_(options) { check_options("AdamW", options); }

std::unique_ptr<optimizer_state> AdamW::operator()(std::vector<named_parameter> parameters) const {
  return make_state(options_, true, std::move(parameters));
}

}  // namespace troupe::optim
