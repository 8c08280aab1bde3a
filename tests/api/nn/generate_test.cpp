#include "troupe/nn/generate.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "troupe/nn/dropout.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"

namespace nn = troupe::nn;
using troupe::tensor;

namespace {

/// Always finds the token after the last one likeliest, by `lead`, and remembers how long its inputs were.
class Counting : public nn::module_of<Counting> {
 public:
  explicit Counting(float lead) : lead_(lead) {}
  troupe::variable forward(const troupe::variable& tokens) override {
    auto length = tokens.value.shape()[1];
    longest = std::max(longest, length);
    was_training |= is_training();
    auto logits = tensor::zeros({1, length, 5});
    auto last = tokens.value.values<std::int64_t>().back();
    logits.values<float>()[static_cast<std::size_t>((length - 1) * 5 + (last + 1) % 5)] = lead_;
    return {logits};
  }
  std::int64_t longest = 0;
  bool was_training = false;

 private:
  float lead_;
};

}  // namespace

TEST_CASE("at temperature 0 the most likely token follows, and the model sees its context only") {
  Counting model(1);
  auto made = nn::generate(model, {2, 3}, {.num_tokens = 6, .temperature = 0, .context = 3});
  CHECK(made == std::vector<std::int64_t>{4, 0, 1, 2, 3, 4});
  CHECK(model.longest == 3);
  CHECK_FALSE(model.was_training);
  CHECK(model.is_training());
}

TEST_CASE("tokens are drawn with the model's probabilities, and equally for equal seeds") {
  Counting model(1);
  auto draw = [&](std::uint64_t seed, int top_k) {
    return nn::generate(model, {0}, {.num_tokens = 4000, .top_k = top_k, .seed = seed});
  };
  auto made = draw(1, 0);
  CHECK(made == draw(1, 0));
  CHECK(made != draw(2, 0));
  int likely = 0;
  for (std::size_t i = 1; i < made.size(); ++i) likely += made[i] == (made[i - 1] + 1) % 5;
  // e / (e + 4) = 0.4046, standard deviation 0.0078
  CHECK(std::abs(likely / 3999.0 - 0.4046) < 0.035);
  auto best = draw(1, 1);
  for (std::size_t i = 1; i < best.size(); ++i) REQUIRE(best[i] == (best[i - 1] + 1) % 5);
}

TEST_CASE("each layer has its mode again after generating, also when the model fails") {
  nn::Sequential model(Counting(1), nn::Dropout(0.5), nn::Sequential(nn::Dropout(0.5), nn::Dropout(0.5)));
  auto& inner = dynamic_cast<nn::Sequential&>(*model[2]);
  model[1]->eval();
  inner[0]->eval();
  auto check = [&] {
    CHECK(model.is_training());
    CHECK_FALSE(model[1]->is_training());
    CHECK(inner.is_training());
    CHECK_FALSE(inner[0]->is_training());
    CHECK(inner[1]->is_training());
  };
  nn::generate(model, {2, 3}, {.num_tokens = 1, .temperature = 0, .context = 3});
  check();
  nn::Sequential failing(nn::Dropout(0.5), nn::Linear(2, 2));
  failing[0]->eval();
  CHECK_THROWS(nn::generate(failing, {2, 3}, {.num_tokens = 1}));
  CHECK(failing.is_training());
  CHECK_FALSE(failing[0]->is_training());
}

TEST_CASE("generating from nothing or with impossible options is refused") {
  Counting model(1);
  CHECK_THROWS_AS(nn::generate(model, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(nn::generate(model, {0}, {.temperature = -1}), std::invalid_argument);
  CHECK_THROWS_AS(nn::generate(model, {0}, {.context = 0}), std::invalid_argument);
}
