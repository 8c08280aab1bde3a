#include "troupe/pipeline/partition.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using troupe::partition_into_stages;
using troupe::stage_range;

namespace {

nn::Sequential five_layers() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 768), nn::ReLU(),
                        nn::Linear(768, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                        nn::Linear(512, 10));
}

double cost_of(const nn::Sequential& model, int first, int last) {
  double sum = 0;
  for (int layer = first; layer < last; ++layer) sum += model[layer]->cost();
  return sum;
}

/// The smallest largest cost over all cuts of layers [first, end) at any layer.
double best_cost(const nn::Sequential& model, int first, int stages) {
  if (stages == 1) return cost_of(model, first, model.size());
  auto best = std::numeric_limits<double>::infinity();
  for (int last = first + 1; last <= model.size() - stages + 1; ++last)
    best = std::min(best, std::max(cost_of(model, first, last), best_cost(model, last, stages - 1)));
  return best;
}

}  // namespace

TEST_CASE("a stage starts with a layer that has parameters and includes the activation after it") {
  auto model = five_layers();
  CHECK(partition_into_stages(model, 1) == std::vector<stage_range>{{0, 10}});
  CHECK(partition_into_stages(model, 4) == std::vector<stage_range>{{0, 3}, {3, 5}, {5, 7}, {7, 10}});
  CHECK(partition_into_stages(model, 5) == std::vector<stage_range>{{0, 3}, {3, 5}, {5, 7}, {7, 9}, {9, 10}});
}

TEST_CASE("no partition has a smaller largest stage") {
  std::vector<nn::Sequential> models{five_layers(), nn::Sequential()};
  for (auto width : {3, 90, 5, 5, 40, 40, 40, 2, 77}) models[1].push_back(nn::Linear(width, 1));
  for (const auto& model : models)
    for (int stages = 1; stages <= 5; ++stages) {
      double largest = 0;
      int next = 0;
      for (auto [first, last] : partition_into_stages(model, stages)) {
        CHECK(first == next);
        CHECK(last > first);
        largest = std::max(largest, cost_of(model, first, last));
        next = last;
      }
      CHECK(next == model.size());
      CHECK(largest == best_cost(model, 0, stages));
    }
}

TEST_CASE("the most stages of a model are its layers with parameters") {
  auto most = troupe::most_stages(five_layers());
  CHECK(most == 5);
  CHECK_NOTHROW(partition_into_stages(five_layers(), most));
  CHECK_THROWS(partition_into_stages(five_layers(), most + 1));
  CHECK(troupe::most_stages(nn::Sequential(nn::Flatten())) == 1);
}

TEST_CASE("more stages than layers is refused with both numbers") {
  CHECK_THROWS_AS(partition_into_stages(five_layers(), 6), troupe::bad_input);
  CHECK_THROWS_WITH(partition_into_stages(five_layers(), 6), ContainsSubstring("more stages than layers") &&
                                                                 ContainsSubstring("6 stages") &&
                                                                 ContainsSubstring("5 layers"));
  CHECK_THROWS_AS(partition_into_stages(five_layers(), 0), troupe::bad_input);
}
