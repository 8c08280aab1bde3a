#pragma once
#include <cstdint>

#include "troupe/autograd/parameter.hpp"

namespace troupe::nn::init {

// Parameter initializers (torch.nn.init). Each is a pure function of the seed and the parameter's full name.

/// Uniform in [low, high].
initializer uniform(float low, float high);
/// Normal with this mean and standard deviation.
initializer normal(float mean, float standard_deviation);
initializer constant(float number);

/// Uniform in +-1/sqrt(fan_in), the default of PyTorch's Linear and Conv2d.
initializer fan_in_uniform(std::int64_t fan_in);
/// Uniform in +-sqrt(6 / (fan_in + fan_out)): Glorot, Bengio 2010.
initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out);
/// Normal with standard deviation sqrt(2 / fan_in), for ReLU: He et al. 2015.
initializer kaiming_normal(std::int64_t fan_in);

}  // namespace troupe::nn::init
