#include "troupe/fsdp/detail/unit_division.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/nn/flatten.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"

using namespace troupe;
using detail::divide_into_units;

namespace {

std::vector<std::string> names_of(nn::Module& model, const std::vector<std::string>& names,
                                  std::int64_t size) {
  std::vector<std::string> result;
  std::size_t num_parameters = 0;
  for (const auto& each : divide_into_units(model, names, size)) {
    result.push_back(each.name + ": " + std::to_string(each.parameters.size()));
    num_parameters += each.parameters.size();
  }
  CHECK(num_parameters == model.named_parameters().size());
  return result;
}

}  // namespace

TEST_CASE("layers that follow one another share a unit up to its size") {
  nn::Sequential model(nn::Linear(3, 3), nn::Flatten(), nn::Linear(3, 3), nn::Linear(3, 3), nn::Linear(9, 9));
  CHECK(names_of(model, {}, 24) == std::vector<std::string>{"0 to 2: 4", "3: 2", "4: 2"});
  CHECK(names_of(model, {}, 1) == std::vector<std::string>{"0: 2", "2: 2", "3: 2", "4: 2"});
  CHECK(names_of(model, {}, 126) == std::vector<std::string>{"the model: 8"});
  nn::Sequential nothing((nn::Flatten()));
  CHECK(names_of(nothing, {}, 10).empty());
}

TEST_CASE("what is larger than a unit is divided into its modules, but not what has parameters of its own") {
  nn::GPT model({.vocabulary = 50, .context = 8, .features = 16, .num_layers = 2, .num_heads = 2});
  auto block = nn::GPT({.vocabulary = 1, .context = 1, .features = 16, .num_layers = 1, .num_heads = 2})
                   .num_parameters();
  auto by_block = divide_into_units(model, {}, block);
  REQUIRE(by_block.size() >= 3);
  for (const auto& each : by_block) {
    std::int64_t count = 0;
    for (const auto& one : each.parameters) count += one.target->extents.num_elements();
    CHECK(count <= block);
  }
  CHECK(divide_into_units(model, {}, 1).size() > by_block.size());
}

TEST_CASE("named modules are units, and what is in none of them is the first") {
  nn::Sequential model(nn::Linear(3, 3), nn::Linear(3, 3), nn::Linear(3, 3),
                       nn::Sequential(nn::Linear(3, 3), nn::Linear(3, 3)));
  CHECK(names_of(model, {"1", "3"}, 0) == std::vector<std::string>{"the rest: 4", "1: 2", "3: 4"});
  CHECK(names_of(model, {"3", "3.1"}, 0) == std::vector<std::string>{"the rest: 6", "3: 2", "3.1: 2"});
}
