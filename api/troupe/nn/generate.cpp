#include "troupe/nn/generate.hpp"

#include <algorithm>
#include <numeric>

#include "troupe/autograd/grad_mode.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/math/elementary_functions.hpp"
#include "troupe/nn/evaluation_scope.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/random/philox.hpp"

namespace troupe::nn {
namespace {

void check(const std::vector<std::int64_t>& tokens, const generate_options& options) {
  if (tokens.empty()) throw_invalid("generate", "at least one token to begin with", "none");
  if (options.num_tokens < 0 || options.context < 1 || !(options.temperature >= 0) || options.top_k < 0)
    throw_invalid("generate", "num_tokens, temperature and top_k >= 0, context >= 1",
                  std::to_string(options.num_tokens) + ", " + std::to_string(options.temperature) + ", " +
                      std::to_string(options.top_k) + " and " + std::to_string(options.context));
}

/// The logits of the last position.
std::vector<float> last_scores(Module& model, const std::vector<std::int64_t>& tokens, std::int64_t context) {
  auto count = std::min(context, static_cast<std::int64_t>(tokens.size()));
  std::vector seen(tokens.end() - count, tokens.end());
  auto logits = cast(model({tensor::from(seen, {1, count})}).value, dtype::f32).to(device());
  auto width = static_cast<std::size_t>(logits.shape()[-1]);
  auto all = logits.values<float>();
  return {all.end() - static_cast<std::ptrdiff_t>(width), all.end()};
}

/// Samples a token with the random number `uniform` in [0, 1).
std::int64_t choose(const std::vector<float>& scores, const generate_options& options, double uniform) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](auto token) { return scores[token]; });
  if (options.temperature == 0) return static_cast<std::int64_t>(order.front());
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(options.top_k)));
  std::vector<double> weights;
  weights.reserve(order.size());
  for (auto token : order)
    weights.push_back(exponential((double{scores[token]} - scores[order.front()]) / options.temperature));
  auto left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<std::int64_t>(order[i]);
  }
  return static_cast<std::int64_t>(order.back());
}

}  // namespace

std::vector<std::int64_t> generate(Module& model, std::vector<std::int64_t> tokens,
                                   const generate_options& options) {
  check(tokens, options);
  no_grad nothing_recorded;
  evaluation_scope evaluating(model);
  philox_stream random(options.seed, random_purpose::sampling, {0, 0, 0});
  auto given = static_cast<std::ptrdiff_t>(tokens.size());
  for (int made = 0; made < options.num_tokens; ++made) {
    auto uniform = random.block(static_cast<std::uint32_t>(made))[0] * 0x1p-32;
    tokens.push_back(choose(last_scores(model, tokens, options.context), options, uniform));
  }
  return {tokens.begin() + given, tokens.end()};
}

}  // namespace troupe::nn
