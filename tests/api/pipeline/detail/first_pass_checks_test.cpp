#include "troupe/pipeline/detail/first_pass_checks.hpp"
#include "api/pipeline/tested_programs.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/pipeline/pipeline.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/mse_loss.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// CrossEntropy, changed by `change`.
template <class Change>
nn::Loss changed(Change change) {
  return [change](const variable& output, const tensor& targets, double gradient_scale) {
    auto result = nn::CrossEntropy()(output, targets, gradient_scale);
    change(result);
    return result;
  };
}

void check(const nn::Loss& loss) {
  detail::check_loss(loss, random_tensor({5, 3}, "logits"), make_labels(0, 0));
}

void refused(const nn::Loss& loss, const char* text) {
  CHECK_THROWS_MATCHES(check(loss), bad_input, MessageMatches(ContainsSubstring(text)));
}

/// A linear layer that does not list its second parameter.
class Forgetful : public nn::module_of<Forgetful> {
 public:
  Forgetful() { extra_.materialize(1, "extra"); }
  variable forward(const variable& input) override { return multiply(linear_(input), as_variable(extra_)); }
  void each_child(const child_visitor& visit) override { visit("linear", linear_); }

 private:
  nn::Linear linear_{12, 3};
  parameter extra_{"extra", {3}, nullptr};
};

}  // namespace

TEST_CASE("losses that count and scale are accepted") {
  CHECK_NOTHROW(check(nn::CrossEntropy()));
  CHECK_NOTHROW(detail::check_loss(nn::MSELoss(), random_tensor({5, 3}, "x"), random_tensor({5, 3}, "y")));
  auto same = random_tensor({5, 3}, "x");
  CHECK_NOTHROW(detail::check_loss(nn::MSELoss(), same, same));  // nothing to learn
  // Twice the loss is a loss too.
  CHECK_NOTHROW(check([](const variable& output, const tensor& targets, double gradient_scale) {
    return nn::CrossEntropy()(output, targets, 2 * gradient_scale);
  }));
}

TEST_CASE("a loss that ignores gradient_scale is refused") {
  refused([](const variable& output, const tensor& targets,
             double) { return nn::CrossEntropy()(output, targets, 1); },
          "gradient_scale");
}

TEST_CASE("a loss_sum or num_correct that is missing or impossible is refused") {
  refused(changed([](loss_result& result) { result.loss_sum = 0; }), "loss_sum");
  refused(changed([](loss_result& result) { result.loss_sum = result.loss.value.values<float>()[0]; }),
          "loss_sum that does not depend on gradient_scale");
  refused(changed([](loss_result& result) { result.num_correct = 6; }),
          "num_correct of at most 5 targets, got 6");
  refused(changed([](loss_result& result) { result.num_correct = -1; }), "num_correct");
}

TEST_CASE("a loss without gradient is refused") {
  refused(changed([](loss_result& result) { result.loss = detach(result.loss); }), "constant");
  refused(changed([](loss_result& result) { result.loss = {}; }), "scalar");
}

TEST_CASE("a stage checks the loss in its first microbatch only") {
  nn::Sequential model(nn::ToFloat(), nn::Flatten(), nn::Linear(12, num_classes));
  auto program = [&](nn::Loss loss) {
    return testing::programs_of(model, 1, {std::move(loss), optim::Adam(), 42})({.stage = 0});
  };
  auto wrong = program(changed([](loss_result& result) { result.loss_sum = 0; }));
  CHECK_THROWS_AS(forward_of(*wrong, pipeline::which(0, 0), make_images(0, 0), make_labels(0, 0)), bad_input);
  int calls = 0;
  auto right = program(changed([&](loss_result&) { ++calls; }));
  for (int index = 0; index < 2; ++index)
    forward_of(*right, pipeline::which(0, index), make_images(0, index), make_labels(0, index));
  CHECK(calls == 2 + 2);
}

TEST_CASE("a used parameter that no module lists is refused with its name", "[host]") {
  nn::Sequential model{nn::ToFloat(), nn::Flatten(), Forgetful()};
  auto program = testing::programs_of(model, 1, {nn::CrossEntropy(), optim::Adam(), 42})({.stage = 0});
  CHECK_THROWS_MATCHES(forward_of(*program, pipeline::which(0, 0), make_images(0, 0), make_labels(0, 0)),
                       bad_input,
                       MessageMatches(ContainsSubstring("extra[3]") && ContainsSubstring("each_child")));
}
