#include "troupe/nn/init.hpp"

#include <cmath>

#include "troupe/random/fill.hpp"

namespace troupe::nn::init {

initializer uniform(float low, float high) {
  return [low, high](tensor& value, std::uint64_t seed, std::string_view name) {
    fill_uniform(value, low, high, seed, name);
  };
}

initializer normal(float mean, float standard_deviation) {
  return [mean, standard_deviation](tensor& value, std::uint64_t seed, std::string_view name) {
    fill_normal(value, mean, standard_deviation, seed, name);
  };
}

initializer constant(float number) {
  return [number](tensor& value, std::uint64_t, std::string_view) {
    value.copy_from(tensor::full(value.shape(), number));
  };
}

initializer fan_in_uniform(std::int64_t fan_in) {
  auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
  return uniform(-bound, bound);
}

initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out) {
  auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out)));
  return uniform(-bound, bound);
}

initializer kaiming_normal(std::int64_t fan_in) {
  return normal(0, static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan_in))));
}

}  // namespace troupe::nn::init
