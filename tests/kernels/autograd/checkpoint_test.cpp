#include "troupe/autograd/checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/tensor/memory.hpp"

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
    return checkpoint([&](const variable& v) { return again(v); }, input);
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
  CHECK(same_bits(plain.first.gradient(), again.first.gradient()));
  CHECK(same_bits(plain.second.gradient(), again.second.gradient()));
}

TEST_CASE("a checkpointed first segment needs no input gradient, and its parameters are reported as ready") {
  block b;
  std::vector<std::string> handed;
  auto y = checkpoint([&](const variable& v) { return b(v); }, {random_tensor({3, 5}, "x"), nullptr});
  y.backward(random_tensor({3, 5}, "dy"),
             {.on_gradient = [&](parameter& ready) { handed.push_back(ready.name); }});
  CHECK(handed == std::vector<std::string>{"second", "first"});
}

TEST_CASE("a checkpointed segment of several inputs returns the gradient of each input that requires one") {
  auto p = random_tensor({3, 5}, "p"), q = random_tensor({3, 5}, "q"), dy = random_tensor({3, 5}, "dy");
  auto segment = [](const std::vector<variable>& in) {
    return multiply(multiply(in[0], in[1]), relu(in[2]));
  };
  auto a = leaf(p), b = leaf(q), c = leaf(p), d = leaf(q);
  segment({a, {p}, b}).backward(dy);
  auto y = checkpoint(segment, {c, {p}, d});
  y.backward(dy);
  CHECK(same_bits(a.gradient(), c.gradient()));
  CHECK(same_bits(b.gradient(), d.gradient()));
  CHECK_FALSE(checkpoint(segment, {{p}, {p}, {q}}).requires_gradient());
  auto ignores = [](const std::vector<variable>& in) { return relu(in[0]); };
  auto e = leaf(p), f = leaf(q);
  checkpoint(ignores, {e, f}).backward(dy);
  CHECK(e.gradient().defined());
  CHECK_FALSE(f.gradient().defined());
}

TEST_CASE("a checkpointed segment that reads a variable from outside is refused") {
  auto w = leaf(tensor::full({2}, 2)), x = leaf(tensor::full({2}, 3));
  auto h = relu(w);
  for (const auto& outside : {h, w}) {
    auto segment = [outside](const variable& v) { return multiply(v, outside); };
    CHECK_THROWS_AS(checkpoint(segment, x), std::invalid_argument);
  }
  auto constant = detach(h);
  checkpoint([constant](const variable& v) { return multiply(v, constant); }, x).backward(h.value);
  CHECK(x.gradient().values<float>()[0] == 4);
}

TEST_CASE("a backward pass within another one that uses up its graph is refused, not followed") {
  class nested : public operation {
   public:
    explicit nested(variable of) : of_(std::move(of)) {}
    std::vector<tensor> backward_input(const tensor& dy) override {
      of_.backward(dy);
      return {dy};
    }

   private:
    variable of_;
  };
  auto x = leaf(tensor::full({2}, 3));
  auto h = relu(x);
  auto y = record(h.value, {h}, std::make_unique<nested>(h));
  CHECK_THROWS_AS(y.backward(h.value), std::logic_error);
}

TEST_CASE("a segment checkpointed under autocast is computed again under autocast, wherever backward runs") {
  auto x = random_tensor({3, 5}, "x");
  auto run = [&](bool again, bool backward_is_within) {
    block b;
    auto input = leaf(x);
    auto segment = [&](const variable& v) { return b(v); };
    std::optional<autocast> mixed(dtype::bf16);
    auto loss = sum(again ? checkpoint(segment, input) : segment(input));
    if (!backward_is_within) mixed.reset();
    loss.backward();
    return std::vector<tensor>{input.gradient(), b.first.gradient(), b.second.gradient()};
  };
  auto expected = run(false, false);
  for (bool within : {false, true}) {
    auto got = run(true, within);
    for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(got[i], expected[i]));
  }
}

TEST_CASE("a retained checkpoint runs backward twice") {
  block once, twice;
  auto x = random_tensor({3, 5}, "x"), dy = random_tensor({3, 5}, "dy");
  auto y = checkpoint([&](const variable& v) { return twice(v); }, leaf(x));
  y.backward(dy, {.retain_graph = true});
  y.backward(dy);
  for (int pass = 0; pass < 2; ++pass) once(leaf(x)).backward(dy);
  CHECK(same_bits(once.first.gradient(), twice.first.gradient()));
}

TEST_CASE("recorded tensors count as activations until backward releases them, fewer with a checkpoint") {
  auto held = [] { return memory_of({}).by_category[static_cast<int>(memory_category::activations)]; };
  auto x = random_tensor({64, 5}, "x");
  auto before = held();
  block b;
  auto plain = sum(b(leaf(x)));
  auto whole = held() - before;
  CHECK(whole >= 64 * 7 * sizeof(float));
  plain.backward();
  plain = {};
  CHECK(held() == before);
  auto again = sum(checkpoint([&](const variable& v) { return b(v); }, leaf(x)));
  CHECK(held() - before < whole / 2);
  again.backward();
  again = {};
  CHECK(held() == before);
  {
    no_grad nothing_recorded;
    auto y = b({x});
    CHECK(held() == before);
  }
}
