#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe::nn {

/// A loss function of a model's output and its targets. Returns sums over the batch, and a `loss` whose
/// backward gives `gradient_scale` times the gradient of the summed loss. It must be a pure, thread-safe
/// function. Before the first step, a Trainer evaluates it on a few made-up inputs
/// (function_fingerprint.hpp), and on the first microbatch, where it throws bad_input if the loss does not
/// count or ignores gradient_scale. CrossEntropy, MSELoss and any function of this signature can be used.
///
/// A step's gradient is that of the mean over what counts in the whole batch, whose microbatches are computed
/// one by one. So what counts must be known before the first: `num_counted` returns it for any rows of
/// targets, the same as loss_result::num_counted. A member function of that name is found, as CrossEntropy
/// has it. A loss without it counts equally much in each sample (bad_input says if it does not).
class Loss {
 public:
  using function = loss_result(const variable& output, const tensor& targets, double gradient_scale);
  using counter = std::int64_t(const tensor& targets);

  Loss(std::nullptr_t = nullptr) {}
  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, Loss> &&
           std::constructible_from<std::function<function>, Function>) Loss(Function computes) {
    if constexpr (requires(const tensor& targets) {
                    { computes.num_counted(targets) } -> std::convertible_to<std::int64_t>;
                  })
      num_counted_ = [computes](const tensor& targets) { return computes.num_counted(targets); };
    computes_ = std::move(computes);
  }
  template <class Function>
  Loss(Function computes, std::function<counter> num_counted)
      : computes_(std::move(computes)), num_counted_(std::move(num_counted)) {}

  loss_result operator()(const variable& output, const tensor& targets, double gradient_scale) const {
    return computes_(output, targets, gradient_scale);
  }
  explicit operator bool() const { return static_cast<bool>(computes_); }

  /// Whether num_counted may be called.
  bool tells_num_counted() const { return static_cast<bool>(num_counted_); }
  std::int64_t num_counted(const tensor& targets) const { return num_counted_(targets); }

  /// The function that was given, and its type; null if it is of another.
  const std::type_info& target_type() const { return computes_.target_type(); }
  template <class Function>
  const Function* target() const {
    return computes_.template target<Function>();
  }

 private:
  std::function<function> computes_;
  std::function<counter> num_counted_;
};

}  // namespace troupe::nn
