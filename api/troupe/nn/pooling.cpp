#include "troupe/nn/pooling.hpp"

#include "troupe/error/errors.hpp"

namespace troupe::nn {
namespace {

pool2d_options square(const char* function, std::int64_t kernel, const pool_layer_options& options) {
  if (kernel < 1 || options.stride < 0 || options.padding < 0)
    throw_invalid(function, "a kernel of at least 1, stride and padding of at least 0",
                  std::to_string(kernel) + ", " + std::to_string(options.stride) + " and " +
                      std::to_string(options.padding));
  auto stride = options.stride == 0 ? kernel : options.stride;
  return {
      .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {options.padding, options.padding}};
}

}  // namespace

MaxPool2d::MaxPool2d(std::int64_t kernel, pool_layer_options options)
    : options_(square("MaxPool2d", kernel, options)) {}

AvgPool2d::AvgPool2d(std::int64_t kernel, pool_layer_options options)
    : options_(square("AvgPool2d", kernel, options)) {}

}  // namespace troupe::nn
