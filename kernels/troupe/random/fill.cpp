#include "troupe/random/fill.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/math/elementary_functions.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {
namespace {

/// The random stream of the parameter with this full name. Throws std::invalid_argument for more than 2^34
/// elements.
philox_stream initial_weight_stream(std::size_t num_elements, std::uint64_t seed, std::string_view name) {
  constexpr std::size_t most_elements = std::size_t{4} << 32;
  if (num_elements > most_elements)
    throw_invalid("initial weights", "at most 2^34 elements in a parameter", std::to_string(num_elements));
  auto hash = hash_of_name(name);
  return {seed,
          random_purpose::initial_weights,
          {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), 0}};
}

float unit_interval(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

/// Coefficients from the constant term up.
double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (auto at = coefficients.rbegin(); at != coefficients.rend(); ++at) sum = sum * x + *at;
  return sum;
}

// Wichura's a and b, for |p - 1/2| <= 0.425, and c and d, for tails down to e^-25.
constexpr std::array a{3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                       3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr std::array b{1.0,
                       4.2313330701600911252e+1,
                       6.8718700749205790830e+2,
                       5.3941960214247511077e+3,
                       2.1213794301586595867e+4,
                       3.9307895800092710610e+4,
                       2.8729085735721942674e+4,
                       5.2264952788528545610e+3};
constexpr std::array c{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                       3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                       2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array d{1.0,
                       2.05319162663775882187e0,
                       1.67638483018380384940e0,
                       6.89767334985100004550e-1,
                       1.48103976427480074590e-1,
                       1.51986665636164571966e-2,
                       5.47593808499534494600e-4,
                       1.05075007164441684324e-9};

/// The quantile function of the standard normal distribution, for p in [2^-25, 1 - 2^-25].
double quantile(double p) {
  auto q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    auto r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  auto r = std::sqrt(-logarithm(std::min(p, 1 - p))) - 1.6;
  auto size = polynomial(c, r) / polynomial(d, r);
  return q < 0 ? -size : size;
}

double uniform_number(std::uint32_t word) { return ((word >> 8) * 2.0 + 1) * 0x1p-25; }

}  // namespace

void fill_uniform(tensor target, float low, float high, std::uint64_t seed, std::string_view name) {
  if (!(low < high))
    throw_invalid("fill_uniform", "low < high", std::to_string(low) + " and " + std::to_string(high));
  auto elements = target.values<float>();
  auto words = initial_weight_stream(elements.size(), seed, name);
  for (std::size_t first = 0; first < elements.size(); first += 4) {
    auto block = words.block(static_cast<std::uint32_t>(first / 4));
    for (std::size_t lane = 0; lane < std::min<std::size_t>(4, elements.size() - first); ++lane)
      elements[first + lane] = low + (high - low) * unit_interval(block[lane]);
  }
}

void fill_normal(tensor target, float mean, float standard_deviation, std::uint64_t seed,
                 std::string_view name) {
  if (!(standard_deviation >= 0))
    throw_invalid("fill_normal", "standard_deviation >= 0", std::to_string(standard_deviation));
  auto elements = target.values<float>();
  auto words = initial_weight_stream(elements.size(), seed, name);
  for (std::size_t first = 0; first < elements.size(); first += 4) {
    auto block = words.block(static_cast<std::uint32_t>(first / 4));
    for (std::size_t lane = 0; lane < std::min<std::size_t>(4, elements.size() - first); ++lane)
      elements[first + lane] =
          static_cast<float>(mean + double{standard_deviation} * quantile(uniform_number(block[lane])));
  }
}

}  // namespace troupe
