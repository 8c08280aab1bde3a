#include "troupe/optim/clip.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

using troupe::parameter;
using troupe::tensor;

TEST_CASE("gradients are clipped by the norm of all parameters that have one") {
  parameter a("a", tensor::zeros({9}), tensor::full({9}, 2)),
      b("b", tensor::zeros({16}), tensor::full({16}, 2));
  parameter without("c", tensor::zeros({3}), tensor::full({3}, 1e9F));
  a.has_gradient = b.has_gradient = true;
  std::vector<parameter*> all{&a, &without, &b};
  CHECK(troupe::optim::clip_grad_norm(all, 11) == 10);
  CHECK(a.gradient().values<float>()[0] == 2);
  CHECK(troupe::optim::clip_grad_norm(all, 1) == 10);
  CHECK(std::abs(a.gradient().values<float>()[8] - 0.2) < 1e-6);
  CHECK(std::abs(b.gradient().values<float>()[15] - 0.2) < 1e-6);
  CHECK(without.gradient().values<float>()[0] == 1e9F);
  CHECK(troupe::optim::clip_grad_norm({}, 1) == 0);
  CHECK_THROWS_AS(troupe::optim::clip_grad_norm(all, -1), std::invalid_argument);
}
