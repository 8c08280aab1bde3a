#include "troupe/autograd/checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/functions.hpp"

using namespace troupe;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

struct block {
  parameter first{"first", random_tensor({7, 5}, "first"), tensor::zeros({7, 5})};
  parameter second{"second", random_tensor({5, 7}, "second"), tensor::zeros({5, 7})};
  int runs = 0;

  variable operator()(const variable& x) {
    ++runs;
    return add(x, linear(relu(linear(x, first, nullptr)), second, nullptr));
  }
};

}  // namespace

TEST_CASE("a checkpointed segment is computed twice and gives the same bits") {
  auto x = random_tensor({3, 5}, "x"), dy = random_tensor({3, 5}, "dy");
  block plain, again;
  auto a = leaf(x), b = leaf(x);
  auto expected = plain(plain(a));
  auto run = [&](const variable& input) {
    return checkpoint([&](const variable& v) { return again(v); }, input, {&again.first, &again.second});
  };
  auto got = run(run(b));
  CHECK(same_bits(got.value, expected.value));
  CHECK(again.runs == 2);
  expected.backward(dy);
  SECTION("all at once") { got.backward(dy); }
  SECTION("weights later") {
    backward_pass pass(got);
    pass.run_inputs(dy);
    CHECK_FALSE(again.first.has_gradient);
    pass.run_weights();
  }
  CHECK(again.runs == 4);
  CHECK(same_bits(a.gradient(), b.gradient()));
  CHECK(same_bits(plain.first.gradient, again.first.gradient));
  CHECK(same_bits(plain.second.gradient, again.second.gradient));
}

TEST_CASE("a checkpointed first segment wants no input gradient, and its parameters are handed over") {
  block b;
  std::vector<std::string> handed;
  auto y = checkpoint([&](const variable& v) { return b(v); }, {random_tensor({3, 5}, "x"), nullptr},
                      {&b.first, &b.second});
  y.backward(random_tensor({3, 5}, "dy"),
             {.on_gradient = [&](parameter& ready) { handed.push_back(ready.name); }});
  CHECK(handed == std::vector<std::string>{"first", "second"});
}
