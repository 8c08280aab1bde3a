#include "troupe/ops/cpu/loops/vector_math.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

namespace cpu = troupe::cpu;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The largest distance from the C library's f64 result, in units in the last place, over floats from `low`,
/// which is positive, to `high`, and over their negatives if `negatives` is 1.
template <class Function, class Reference>
double worst_error(Function function, Reference reference, float low, float high, int negatives) {
  double worst = 0;
  for (int sign = 0; sign <= negatives; ++sign)
    for (auto size = std::bit_cast<std::uint32_t>(low); size <= std::bit_cast<std::uint32_t>(high);
         size += 1009) {
      auto x = std::bit_cast<float>(size) * (sign == 0 ? 1.0F : -1.0F);
      double expected = reference(double{x});
      if (std::abs(expected) < double{std::numeric_limits<float>::min()}) continue;
      int exponent = 0;
      std::frexp(expected, &exponent);
      worst = std::fmax(worst, std::abs(double{function(x)} - expected) / std::ldexp(1.0, exponent - 24));
    }
  return worst;
}

}  // namespace

TEST_CASE("exp, log, tanh and sigmoid in f32 keep their errors in units in the last place", "[host]") {
  CHECK(worst_error([](float x) { return cpu::exp_f32(x); }, [](double x) { return std::exp(x); }, 1e-30F,
                    87.33F, 1) < 1.5);
  CHECK(worst_error([](float x) { return cpu::log_f32(x); }, [](double x) { return std::log(x); }, 1e-44F,
                    3.4e38F, 0) < 1.5);
  CHECK(worst_error([](float x) { return cpu::tanh_f32(x); }, [](double x) { return std::tanh(x); }, 1e-30F,
                    50, 1) < 2);
  CHECK(worst_error([](float x) { return cpu::sigmoid_f32(x); },
                    [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-30F, 87, 1) < 2.5);
}

TEST_CASE("f32 functions have the limits of their definitions", "[host]") {
  CHECK(cpu::exp_f32(0) == 1);
  CHECK(cpu::exp_f32(-infinity) == 0);
  CHECK(cpu::exp_f32(-88) == 0);
  CHECK(cpu::exp_f32(infinity) == infinity);
  CHECK(cpu::exp_f32(89) == infinity);
  CHECK(cpu::log_f32(1) == 0);
  CHECK(cpu::log_f32(0) == -infinity);
  CHECK(cpu::log_f32(infinity) == infinity);
  CHECK(std::isnan(cpu::log_f32(-1)));
  CHECK(cpu::tanh_f32(-infinity) == -1);
  CHECK(cpu::sigmoid_f32(-infinity) == 0);
  CHECK(cpu::sigmoid_f32(infinity) == 1);
  for (auto* function : {cpu::exp_f32, cpu::log_f32, cpu::tanh_f32, cpu::sigmoid_f32})
    CHECK(std::isnan(function(not_a_number)));
}
