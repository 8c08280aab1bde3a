#include "troupe/math/cosine.hpp"

#include <numbers>

namespace troupe {

// cos(pi t) = -cos(pi (1 - t)), and in [0, pi/2] the Taylor series, whose term of x^24 is below 1e-19.
double cosine_of_pi_times(double t) {
  if (t > 0.5) return -cosine_of_pi_times(1 - t);
  auto x = std::numbers::pi * t, square = x * x;
  double sum = 1;
  for (int power = 22; power >= 2; power -= 2) sum = 1 - sum * square / (power * (power - 1));
  return sum;
}

}  // namespace troupe
