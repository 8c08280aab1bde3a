#include "troupe/ops/kernels/batch_norm.hpp"

#include <cmath>

#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_channels.hpp"
#include "troupe/ops/cpu/in_planes.hpp"
#include "troupe/ops/cpu/lane_sums.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"
#include "troupe/ops/cpu/weight_gradient.hpp"

namespace troupe::cpu {
namespace {

/// y = (x - center) scale + shift
TROUPE_CLONES void affine(const float* x, float center, float scale, float shift, float* y,
                          std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = (x[i] - center) * scale + shift;
}

/// What dx is made of, for one channel.
struct gradient_terms {
  float mean, scale, average_dy, slope;
};

TROUPE_CLONES void input_gradient(const float* dy, const float* x, const gradient_terms& of, float* dx,
                                  std::int64_t size) {
  auto [mean, scale, average_dy, slope] = of;
  for (std::int64_t i = 0; i < size; ++i) dx[i] = ((dy[i] - average_dy) - (x[i] - mean) * slope) * scale;
}

float at(const tensor& values, std::int64_t channel) {
  return values.values<float>()[static_cast<std::size_t>(channel)];
}
void set(tensor& values, std::int64_t channel, double value) {
  values.values<float>()[static_cast<std::size_t>(channel)] = static_cast<float>(value);
}

/// Of f32, bf16 or f16, or undefined and everywhere `otherwise`.
float parameter_at(const tensor& values, std::int64_t channel, float otherwise) {
  if (!values.defined()) return otherwise;
  float room = 0;
  return *read_block(values, channel, 1, {&room, 1});
}

struct moments {
  double mean = 0, squares = 0;  ///< squares: the sum of (x - mean)^2
};

/// The mean first, and the distances from it afterwards, while the channel is in the cache.
moments moments_of(const channel_runs& x) {
  moments result;
  result.mean = sum_over_channel(x, [&](std::int64_t run, std::int64_t first,
                                        std::int64_t count) { return lane_sum(x.run(run) + first, count); }) /
                static_cast<double>(x.num_runs * x.run_size);
  auto center = static_cast<float>(result.mean);
  result.squares = sum_over_channel(x, [&](std::int64_t run, std::int64_t first, std::int64_t count) {
    return lane_sum_of_squares(x.run(run) + first, center, count);
  });
  return result;
}

void update_running(const moments& of_batch, double count, double momentum, std::int64_t channel,
                    tensor& mean, tensor& variance) {
  if (!mean.defined()) return;
  set(mean, channel, (1 - momentum) * at(mean, channel) + momentum * of_batch.mean);
  set(variance, channel, (1 - momentum) * at(variance, channel) + momentum * of_batch.squares / (count - 1));
}

void forward(const batch_norm_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
             const batch_norm_options& options, tensor& running_mean, tensor& running_variance,
             batch_norm_result& result) {
  auto count = static_cast<double>(of.batch * of.size);
  for_each_group(of, [&](std::int64_t first) {
    channel_group from(of, x, first), to(of, result.y, first);
    from.read();
    for (auto channel = first; channel < from.end(); ++channel) {
      auto in = from.runs(channel), out = to.runs(channel);
      auto found = moments_of(in);
      set(result.mean, channel, found.mean);
      set(result.rstd, channel, 1 / std::sqrt(found.squares / count + options.epsilon));
      update_running(found, count, options.momentum, channel, running_mean, running_variance);
      auto scale = at(result.rstd, channel) * parameter_at(weight, channel, 1);
      auto shift = parameter_at(bias, channel, 0);
      for (std::int64_t run = 0; run < in.num_runs; ++run)
        affine(in.run(run), at(result.mean, channel), scale, shift, out.run(run), in.run_size);
    }
    to.write();
  });
}

void inference(const batch_norm_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
               const tensor& running_mean, const tensor& running_variance, double epsilon, tensor& y) {
  auto scales = tensor::empty({of.channels}), shifts = tensor::empty({of.channels});
  for (std::int64_t channel = 0; channel < of.channels; ++channel) {
    auto rstd = static_cast<float>(1 / std::sqrt(at(running_variance, channel) + epsilon));
    set(scales, channel, rstd * parameter_at(weight, channel, 1));
    set(shifts, channel, parameter_at(bias, channel, 0));
  }
  for_each_plane(of.batch * of.channels, {of.size, of.size}, x, y,
                 [&](std::int64_t plane, const float* in, float* out, float*) {
                   auto channel = plane % of.channels;
                   affine(in, at(running_mean, channel), at(scales, channel), at(shifts, channel), out,
                          of.size);
                 });
}

/// The sums of dy and of dy (x - mean).
struct gradient_sums {
  double of_dy = 0, of_products = 0;
};

gradient_sums gradient_sums_of(const channel_runs& x, const channel_runs& dy, float mean) {
  gradient_sums sums;
  sums.of_dy = sum_over_channel(dy, [&](std::int64_t run, std::int64_t first, std::int64_t count) {
    return lane_sum(dy.run(run) + first, count);
  });
  sums.of_products = sum_over_channel(dy, [&](std::int64_t run, std::int64_t first, std::int64_t count) {
    return lane_sum_of_products(x.run(run) + first, mean, dy.run(run) + first, count);
  });
  return sums;
}

void backward_input(const batch_norm_problem& of, const tensor& dy, const tensor& x, const tensor& weight,
                    const tensor& mean, const tensor& rstd, tensor& dx) {
  auto count = static_cast<double>(of.batch * of.size);
  for_each_group(of, [&](std::int64_t first) {
    channel_group x_group(of, x, first), dy_group(of, dy, first), dx_group(of, dx, first);
    x_group.read();
    dy_group.read();
    for (auto channel = first; channel < x_group.end(); ++channel) {
      auto x_runs = x_group.runs(channel), dy_runs = dy_group.runs(channel), dx_runs = dx_group.runs(channel);
      auto sums = gradient_sums_of(x_runs, dy_runs, at(mean, channel));
      auto deviation = double{at(rstd, channel)};
      gradient_terms terms{at(mean, channel), at(rstd, channel) * parameter_at(weight, channel, 1),
                           static_cast<float>(sums.of_dy / count),
                           static_cast<float>(deviation * deviation * sums.of_products / count)};
      for (std::int64_t run = 0; run < x_runs.num_runs; ++run)
        input_gradient(dy_runs.run(run), x_runs.run(run), terms, dx_runs.run(run), x_runs.run_size);
    }
    dx_group.write();
  });
}

void backward_weight(const batch_norm_problem& of, const tensor& x, const tensor& dy, const tensor& mean,
                     const tensor& rstd, tensor& dweight, tensor& dbias, gradient_mode mode) {
  auto weight_part = place_for_gradient(dweight, mode), bias_part = place_for_gradient(dbias, mode);
  for_each_group(of, [&](std::int64_t first) {
    channel_group x_group(of, x, first), dy_group(of, dy, first);
    x_group.read();
    dy_group.read();
    for (auto channel = first; channel < x_group.end(); ++channel) {
      auto sums = gradient_sums_of(x_group.runs(channel), dy_group.runs(channel), at(mean, channel));
      if (weight_part.defined()) set(weight_part, channel, sums.of_products * at(rstd, channel));
      if (bias_part.defined()) set(bias_part, channel, sums.of_dy);
    }
  });
  store_gradient(weight_part, dweight, mode);
  store_gradient(bias_part, dbias, mode);
}

}  // namespace

batch_norm_kernels batch_norm() {
  return {.forward = forward,
          .inference = inference,
          .backward_input = backward_input,
          .backward_weight = backward_weight};
}

}  // namespace troupe::cpu
