#include "troupe/nn/conv2d.hpp"

#include <algorithm>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
               conv2d_layer_options options)
    : options_(std::move(options)) {
  auto groups = options_.groups;
  if (std::min({in_channels, out_channels, kernel, groups, options_.stride, options_.dilation}) < 1 ||
      options_.padding < 0)
    throw_invalid("Conv2d",
                  "channels, kernel, stride, dilation and groups of at least 1, padding of at least 0",
                  std::to_string(in_channels) + " to " + std::to_string(out_channels) + " channels, kernel " +
                      std::to_string(kernel) + ", stride " + std::to_string(options_.stride) + ", dilation " +
                      std::to_string(options_.dilation) + ", groups " + std::to_string(groups) +
                      ", padding " + std::to_string(options_.padding));
  if (in_channels % groups != 0 || out_channels % groups != 0)
    throw_invalid("Conv2d", "channels that are multiples of groups " + std::to_string(groups),
                  std::to_string(in_channels) + " and " + std::to_string(out_channels));
  shape filter{in_channels / groups, kernel, kernel};
  auto fan_in = filter.num_elements();
  auto or_usual = [&](const initializer& init) { return init ? init : init::fan_in_uniform(fan_in); };
  weight_ = parameter("weight", {out_channels, in_channels / groups, kernel, kernel},
                      or_usual(options_.weight_init));
  bias_ = parameter("bias", {out_channels}, or_usual(options_.bias_init));
}

conv2d_options Conv2d::operation_options() const {
  return {.stride = {options_.stride, options_.stride},
          .padding = {options_.padding, options_.padding},
          .dilation = {options_.dilation, options_.dilation},
          .groups = options_.groups};
}

variable Conv2d::forward(const variable& input) {
  return conv2d(input, weight_, options_.bias ? &bias_ : nullptr, operation_options());
}

variable Conv2d::forward_with_relu(const variable& input) {
  auto with_relu = operation_options();
  with_relu.relu = true;
  return conv2d(input, weight_, options_.bias ? &bias_ : nullptr, with_relu);
}

void Conv2d::each_parameter(const parameter_visitor& visit) {
  visit(weight_);
  if (options_.bias) visit(bias_);
}

double Conv2d::cost() const {
  constexpr double pixels = 16 * 16;
  return pixels * static_cast<double>(weight_.extents.num_elements());
}

}  // namespace troupe::nn
