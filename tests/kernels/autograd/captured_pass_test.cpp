#include "troupe/autograd/captured_pass.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/functions.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::captured_pass;
using troupe::parameter;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

parameter weight_named(const char* name) {
  return {name, random_tensor({3, 4}, name), tensor::zeros({3, 4})};
}

}  // namespace

TEST_CASE("each run of a captured pass gives the gradients of the parameters that it reaches") {
  auto used = weight_named("used"), other = weight_named("other");
  auto x = tensor::zeros({2, 4});
  auto work = [&] { mse_loss(linear({x}, used, nullptr), tensor::zeros({2, 3}), 1).loss.backward(); };
  captured_pass pass({}, work, {&used, &other});
  for (auto* batch : {"first", "second", "third"}) {
    x.copy_from(random_tensor({2, 4}, batch));
    pass.run();
    CHECK(used.has_gradient);
    CHECK_FALSE(other.has_gradient);
    auto gradient = used.gradient().clone();
    used.mark_stepped();
    work();
    CHECK(same_bits(gradient, used.gradient()));
    used.mark_stepped();
  }
}

TEST_CASE("a captured pass refuses to run over gradients that no optimizer has used") {
  auto weight = weight_named("weight");
  captured_pass pass({}, [&] { weight.has_gradient = true; }, {&weight});
  pass.run();
  CHECK_THROWS_MATCHES(pass.run(), std::logic_error,
                       MessageMatches(ContainsSubstring(
                           "[captured_pass] expected parameters without gradients, got one of \"weight\"")));
}
