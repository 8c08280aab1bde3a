#include "troupe/ops/kernels/batch_norm.hpp"

#include <array>
#include <cmath>
#include <tuple>

#include "troupe/ops/cpu/channel_groups.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/reductions/weight_gradient.hpp"

namespace troupe::cpu {
namespace {

/// Lines of `count` channels, `size` elements each.
struct line_extents {
  std::int64_t count, size;
};

/// For each channel y = (x - center) scale + shift
TROUPE_CLONES void affine(const float* __restrict x, line_extents line, const float* center,
                          const float* scale, const float* shift, float* __restrict y) {
  for (std::int64_t c = 0; c < line.count; ++c, x += line.size, y += line.size)
    for (std::int64_t i = 0; i < line.size; ++i) y[i] = (x[i] - center[c]) * scale[c] + shift[c];
}

/// The coefficients of dx for one channel.
struct gradient_terms {
  float mean, scale, average_dy, slope;
};

TROUPE_CLONES void input_gradient(const float* __restrict dy, const float* __restrict x, line_extents line,
                                  const gradient_terms* terms, float* __restrict dx) {
  for (std::int64_t c = 0; c < line.count; ++c, dy += line.size, x += line.size, dx += line.size) {
    auto [mean, scale, average_dy, slope] = terms[c];
    for (std::int64_t i = 0; i < line.size; ++i)
      dx[i] = ((dy[i] - average_dy) - (x[i] - mean) * slope) * scale;
  }
}

/// Partial f32 sums of a group's channels: lanes per channel if its runs are long, else one sum per element
/// of the line, since short runs do not fill vectors.
struct partial_sums {
  std::array<lane_block, max_channels_in_group> lanes;
  std::array<float, max_channels_in_group * long_run> elements;
};

/// Adds term(channel, element) of each channel of a line.
template <class Term>
[[gnu::always_inline]] inline void add_terms(line_extents line, partial_sums& to, const Term& term) {
  for (std::int64_t c = 0; c < line.count; ++c) {
    auto first = c * line.size;
    if (line.size < long_run) {
      auto* sums = to.elements.data();
      for (std::int64_t i = first; i < first + line.size; ++i) sums[i] += term(c, i);
    } else {
      auto in = to.lanes[static_cast<std::size_t>(c)];
      combine_in_lanes(in, line.size, plus, [&](std::int64_t i) { return term(c, first + i); });
      to.lanes[static_cast<std::size_t>(c)] = in;
    }
  }
}

TROUPE_CLONES void add_elements(const float* __restrict x, line_extents line, partial_sums& __restrict to) {
  add_terms(line, to, [&](std::int64_t, std::int64_t i) { return x[i]; });
}

TROUPE_CLONES void add_squares(const float* __restrict x, const float* __restrict center, line_extents line,
                               partial_sums& __restrict to) {
  add_terms(line, to,
            [&](std::int64_t c, std::int64_t i) { return (x[i] - center[c]) * (x[i] - center[c]); });
}

TROUPE_CLONES void add_products(const float* __restrict x, const float* __restrict center,
                                const float* __restrict dy, line_extents line, partial_sums& __restrict to) {
  add_terms(line, to, [&](std::int64_t c, std::int64_t i) { return (x[i] - center[c]) * dy[i]; });
}

using channel_sums = std::array<double, max_channels_in_group>;

TROUPE_CLONES void add_to_sums(partial_sums& partial, line_extents line, channel_sums& sums) {
  for (std::int64_t c = 0; c < line.count; ++c) {
    auto channel = static_cast<std::size_t>(c);
    const auto* elements = partial.elements.data() + c * line.size;
    sums[channel] += line.size < long_run
                         ? sum_in_lanes(line.size, [&](std::int64_t i) { return elements[i]; })
                         : double{fold_lanes(partial.lanes[channel], plus)};
  }
}

void clear(partial_sums& sums, line_extents line) {
  if (line.size < long_run)
    std::fill_n(sums.elements.begin(), line.count * line.size, 0.0F);
  else
    std::fill_n(sums.lanes.begin(), line.count, lane_block{});
}

/// Accumulates the sums of `add_line(image, partial_sums...)` for each channel of a group: in f32 over some
/// images, then in f64.
template <std::size_t Count, class AddLine>
std::array<channel_sums, Count> sums_over_lines(const batch_norm_problem& problem, channel_group group,
                                                const AddLine& add_line) {
  auto images = problem.size < long_run ? 32 : std::max<std::int64_t>(1, 2048 / problem.size);
  std::array<partial_sums, Count> partial;
  line_extents line{group.count, problem.size};
  std::array<channel_sums, Count> sums{};
  for (std::int64_t first = 0; first < problem.batch; first += images) {
    for (auto& each : partial) clear(each, line);
    for (auto image = first; image < std::min(problem.batch, first + images); ++image)
      std::apply([&](auto&... each) { add_line(image, each...); }, partial);
    for (std::size_t i = 0; i < Count; ++i) add_to_sums(partial[i], line, sums[i]);
  }
  return sums;
}

float at(const tensor& values, std::int64_t channel) {
  return values.values<float>()[static_cast<std::size_t>(channel)];
}
void set(tensor& values, std::int64_t channel, double value) {
  values.values<float>()[static_cast<std::size_t>(channel)] = static_cast<float>(value);
}

/// Converts an optional f32, bf16 or f16 tensor; an undefined one gives `otherwise` everywhere.
float parameter_at(const tensor& values, std::int64_t channel, float otherwise) {
  if (!values.defined()) return otherwise;
  float room = 0;
  return *read_block(values, channel, 1, {&room, 1});
}

void update_running(double batch_mean, double squares, double count, double momentum, std::int64_t channel,
                    tensor& mean, tensor& variance) {
  if (!mean.defined()) return;
  set(mean, channel, (1 - momentum) * at(mean, channel) + momentum * batch_mean);
  set(variance, channel, (1 - momentum) * at(variance, channel) + momentum * squares / (count - 1));
}

/// A group's values in a tensor with one value per channel.
const float* values_of(const tensor& x, channel_group group) {
  return x.values<float>().data() + group.first;
}

void forward(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             const batch_norm_options& options, tensor& running_mean, tensor& running_variance,
             batch_norm_result& result) {
  auto count = static_cast<double>(problem.batch * problem.size);
  for_each_group(problem, [&](channel_group group) {
    line_extents line{group.count, problem.size};
    auto [sums] = sums_over_lines<1>(problem, group, [&](std::int64_t image, partial_sums& to) {
      add_elements(read_line(problem, x, group, image, 0), line, to);
    });
    for (std::int64_t c = 0; c < group.count; ++c)
      set(result.mean, group.first + c, sums[static_cast<std::size_t>(c)] / count);
    const auto* mean = values_of(result.mean, group);
    // Squared deviations from the mean, while the channels are in the cache.
    auto [squares] = sums_over_lines<1>(problem, group, [&](std::int64_t image, partial_sums& to) {
      add_squares(read_line(problem, x, group, image, 0), mean, line, to);
    });
    std::array<float, max_channels_in_group> scale, shift;
    for (std::size_t c = 0; c < static_cast<std::size_t>(group.count); ++c) {
      auto channel = group.first + static_cast<std::int64_t>(c);
      set(result.rstd, channel, 1 / std::sqrt(squares[c] / count + options.epsilon));
      update_running(sums[c] / count, squares[c], count, options.momentum, channel, running_mean,
                     running_variance);
      scale[c] = at(result.rstd, channel) * parameter_at(weight, channel, 1);
      shift[c] = parameter_at(bias, channel, 0);
    }
    for (std::int64_t image = 0; image < problem.batch; ++image)
      write_line(problem, result.y, group, image, 1, [&](float* to) {
        affine(read_line(problem, x, group, image, 0), line, mean, scale.data(), shift.data(), to);
      });
  });
}

void inference(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
               const tensor& running_mean, const tensor& running_variance, double epsilon, tensor& y) {
  auto scales = tensor::empty({problem.channels}), shifts = tensor::empty({problem.channels});
  for (std::int64_t channel = 0; channel < problem.channels; ++channel) {
    auto rstd = static_cast<float>(1 / std::sqrt(at(running_variance, channel) + epsilon));
    set(scales, channel, rstd * parameter_at(weight, channel, 1));
    set(shifts, channel, parameter_at(bias, channel, 0));
  }
  for_each_line(problem, [&](channel_group group, std::int64_t image) {
    write_line(problem, y, group, image, 1, [&](float* to) {
      affine(read_line(problem, x, group, image, 0), {group.count, problem.size},
             values_of(running_mean, group), values_of(scales, group), values_of(shifts, group), to);
    });
  });
}

/// The sums of dy and of dy (x - mean), for each channel of a group.
struct gradient_sums {
  channel_sums of_dy, of_products;
};

gradient_sums gradient_sums_of(const batch_norm_problem& problem, channel_group group, const tensor& x,
                               const tensor& dy, const tensor& mean) {
  line_extents line{group.count, problem.size};
  auto add = [&](std::int64_t image, partial_sums& of_dy, partial_sums& of_products) {
    const auto *x_line = read_line(problem, x, group, image, 0),
               *dy_line = read_line(problem, dy, group, image, 1);
    add_elements(dy_line, line, of_dy);
    add_products(x_line, values_of(mean, group), dy_line, line, of_products);
  };
  auto [of_dy, of_products] = sums_over_lines<2>(problem, group, add);
  return {of_dy, of_products};
}

void backward_input(const batch_norm_problem& problem, const tensor& dy, const tensor& x,
                    const tensor& weight, const tensor& mean, const tensor& rstd, tensor& dx) {
  auto count = static_cast<double>(problem.batch * problem.size);
  for_each_group(problem, [&](channel_group group) {
    auto sums = gradient_sums_of(problem, group, x, dy, mean);
    std::array<gradient_terms, max_channels_in_group> terms;
    for (std::size_t c = 0; c < static_cast<std::size_t>(group.count); ++c) {
      auto channel = group.first + static_cast<std::int64_t>(c);
      auto deviation = double{at(rstd, channel)};
      terms[c] = {at(mean, channel), at(rstd, channel) * parameter_at(weight, channel, 1),
                  static_cast<float>(sums.of_dy[c] / count),
                  static_cast<float>(deviation * deviation * sums.of_products[c] / count)};
    }
    for (std::int64_t image = 0; image < problem.batch; ++image)
      write_line(problem, dx, group, image, 2, [&](float* to) {
        input_gradient(read_line(problem, dy, group, image, 1), read_line(problem, x, group, image, 0),
                       {group.count, problem.size}, terms.data(), to);
      });
  });
}

void backward_weight(const batch_norm_problem& problem, const tensor& x, const tensor& dy, const tensor& mean,
                     const tensor& rstd, tensor& dweight, tensor& dbias, gradient_mode mode) {
  auto weight_part = place_for_gradient(dweight, mode), bias_part = place_for_gradient(dbias, mode);
  for_each_group(problem, [&](channel_group group) {
    auto sums = gradient_sums_of(problem, group, x, dy, mean);
    for (std::size_t c = 0; c < static_cast<std::size_t>(group.count); ++c) {
      auto channel = group.first + static_cast<std::int64_t>(c);
      if (weight_part.defined()) set(weight_part, channel, sums.of_products[c] * at(rstd, channel));
      if (bias_part.defined()) set(bias_part, channel, sums.of_dy[c]);
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
