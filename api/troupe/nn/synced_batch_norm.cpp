#include "troupe/nn/synced_batch_norm.hpp"

#include <cmath>
#include <utility>

#include "troupe/autograd/saved_parameter.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe::nn {
namespace {

/// Splits a count into two f32 numbers whose sums over members are exact.
constexpr std::int64_t count_unit = 4096;

struct statistics {
  tensor mean, variance, rstd;  ///< f32 [C], of all members
  double count = 0;             ///< elements of each channel, of all members
};

/// On x's device.
tensor like_channels(const tensor& x, float value) {
  return tensor::full({x.shape()[1]}, value).to(x.device());
}

/// Sums in the memory of x's device, by way of the CPU's.
void add_up_over_members(tensor& values, const sum_over_members& sum) {
  auto on_cpu = values.to({});
  sum(on_cpu);
  if (values.device() != on_cpu.device()) values.copy_from(on_cpu);
}

/// (x - center) * factor for each channel, in x's dtype.
tensor scaled_distance(const tensor& x, const tensor& center, const tensor& factor) {
  return batch_norm_inference(x, factor, like_channels(x, 0), center, like_channels(x, 1), {.epsilon = 0});
}

/// Per channel: the sum of dy.
void add_up(const tensor& x, const tensor& dy, const tensor& center, tensor products, tensor values) {
  batch_norm_backward_weight(x, dy, center, like_channels(x, 1), std::move(products), std::move(values),
                             gradient_mode::assign);
}

/// Reduces the sums and the count over the members and returns the mean.
void take_mean(const tensor& x, const sum_over_members& sum, statistics& found) {
  auto channels = x.shape()[1];
  auto sums_here = tensor::empty({channels}, dtype::f32, x.device());
  add_up(x, x, like_channels(x, 0), {}, sums_here);
  auto sums = tensor::empty({channels + 2});
  sums.rows(0, channels).copy_from(sums_here);
  auto count = x.num_elements() / channels;
  auto values = sums.values<float>();
  auto last = static_cast<std::size_t>(channels);
  const auto num_units = count / count_unit;
  values[last] = static_cast<float>(num_units);
  values[last + 1] = static_cast<float>(count % count_unit);
  sum(sums);
  found.count = double{values[last]} * count_unit + double{values[last + 1]};
  if (found.count < 2)
    throw_invalid("SyncBatchNorm", "at least two elements in each channel over all members", describe(x));
  auto mean = tensor::empty({channels});
  for (std::size_t i = 0; i < last; ++i)
    mean.values<float>()[i] = static_cast<float>(values[i] / found.count);
  found.mean = mean.to(x.device());
}

statistics statistics_of(const tensor& x, double epsilon, const sum_over_members& sum) {
  statistics found;
  take_mean(x, sum, found);
  auto distances = scaled_distance(x, found.mean, like_channels(x, 1));
  auto squares = like_channels(x, 0);
  add_up(x, distances, found.mean, squares, {});
  auto of_all = squares.to({});
  sum(of_all);
  auto variance = of_all.values<float>();
  auto deviation = tensor::empty(of_all.shape());
  auto rstd = deviation.values<float>();
  for (std::size_t i = 0; i < variance.size(); ++i) {
    variance[i] = static_cast<float>(variance[i] / found.count);
    rstd[i] = static_cast<float>(1 / std::sqrt(variance[i] + epsilon));
  }
  found.variance = of_all.to(x.device());
  found.rstd = deviation.to(x.device());
  return found;
}

/// Moved on the CPU: so few numbers, whose bits are the same on every device.
void move_towards(tensor& running, const tensor& batch, double factor, double momentum) {
  if (!running.defined()) return;
  auto moved = running.to({}), found = batch.to({});
  auto to = moved.values<float>();
  auto from = std::as_const(found).values<float>();
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = static_cast<float>((1 - momentum) * to[i] + momentum * factor * from[i]);
  if (running.device() != moved.device()) running.copy_from(moved);
}

class synced_batch_norm_operation : public operation {
 public:
  synced_batch_norm_operation(tensor x, statistics batch, parameter& weight, parameter& bias,
                              sum_over_members sum)
      : x_(std::move(x)),
        statistics_(std::move(batch)),
        weight_(&weight),
        bias_(bias),
        sum_(std::move(sum)) {}

  /// dx = weight rstd (dy - average(dy) - x' average(dy x')), averages over all members.
  std::vector<tensor> backward_input(const tensor& dy) override {
    auto channels = x_.shape()[1];
    auto sums = tensor::empty({2 * channels}, dtype::f32, x_.device());
    batch_norm_backward_weight(x_, dy, statistics_.mean, statistics_.rstd, sums.rows(0, channels),
                               sums.rows(channels, channels), gradient_mode::assign);
    weight_part_ = sums.rows(0, channels).clone();
    bias_part_ = sums.rows(channels, channels).clone();
    add_up_over_members(sums, sum_);
    scale(sums, static_cast<float>(1 / statistics_.count));
    auto factor = multiply(statistics_.rstd, weight_.value());
    auto slope = negate(multiply(multiply(statistics_.rstd, sums.rows(0, channels)), factor));
    auto dx = scaled_distance(dy, sums.rows(channels, channels), factor);
    axpy(1, scaled_distance(x_, statistics_.mean, slope), dx);
    return {dx};
  }
  void backward_weight(const tensor&) override {
    add_gradient(*weight_.target(), weight_part_);
    add_gradient(bias_, bias_part_);
  }
  std::vector<parameter*> parameters() const override {
    return trainable_parameters({weight_.target(), &bias_});
  }
  void release_inputs() override { x_ = {}; }

 private:
  tensor x_;
  statistics statistics_;
  saved_parameter weight_;
  parameter& bias_;
  sum_over_members sum_;
  tensor weight_part_, bias_part_;
};

}  // namespace

variable synced_batch_norm(const variable& x, parameter& weight, parameter& bias, tensor running_mean,
                           tensor running_variance, const batch_norm_options& options,
                           const sum_over_members& sum) {
  auto found = statistics_of(cast(x.value, dtype::f32), options.epsilon, sum);
  move_towards(running_mean, found.mean, 1, options.momentum);
  move_towards(running_variance, found.variance, found.count / (found.count - 1), options.momentum);
  make_ready({&weight, &bias});
  auto y = batch_norm_inference(x.value, weight.value(), bias.value(), found.mean, found.variance, options);
  if (!would_record({&x}, {&weight, &bias})) return {y};
  return record(y, {x},
                std::make_unique<synced_batch_norm_operation>(x.value, std::move(found), weight, bias, sum));
}

}  // namespace troupe::nn
