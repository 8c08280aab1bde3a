#include "troupe/detail/gathered_results.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("weights of all stages become one list in name order, in memory of its own") {
  wire::packed_state_pool pool;
  std::vector<tensor> stages{
      pack_state({{"10.weight", tensor::full({2}, 3)}}, pool),
      pack_state({{"0.weight", tensor::full({2}, 1)}, {"2.bias", tensor::full({1}, 2)}}, pool)};
  auto weights = detail::unpack_weights(stages);
  REQUIRE(weights.size() == 3);
  CHECK(weights[0].name == "0.weight");
  CHECK(weights[1].name == "10.weight");
  CHECK(same_bits(weights[1].value, tensor::full({2}, 3)));
  weights[1].value.fill_zero();
  CHECK(same_bits(detail::unpack_weights(stages)[1].value, tensor::full({2}, 3)));
}

TEST_CASE("of the states of all stages the weights are taken, a shared one once, and nothing else") {
  wire::packed_state_pool pool;
  std::vector<tensor> states{
      pack_state({{"0.weight", tensor::full({2}, 1)}, {"0.weight/moment", tensor::full({2}, 9)}}, pool),
      pack_state({{"0.weight", tensor::full({2}, 1)},
                  {"1.mean", tensor::full({1}, 2)},
                  {"troupe.metrics", tensor::full({1}, 8)}},
                 pool)};
  auto weights = detail::weights_in(states);
  REQUIRE(weights.size() == 2);
  CHECK(weights[0].name == "0.weight");
  CHECK(weights[1].name == "1.mean");
  weights[1].value.fill_zero();
  CHECK(same_bits(detail::weights_in(states)[1].value, tensor::full({1}, 2)));
}

TEST_CASE("weights of which slices hold parts are put together") {
  wire::packed_state_pool pool;
  auto whole = tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3});
  auto columns = [&](std::int64_t first, const std::vector<float>& values) {
    auto count = static_cast<std::int64_t>(values.size()) / 2;
    named_tensor held{"0.weight", tensor::from(values, {2, count})};
    auto contents = whole_contents(held);
    contents.whole = {2, 3};
    contents.boxes = {{{0, first}, {2, count}}};
    return pack_state({held, {"0.bias", tensor::full({1}, 7)}},
                      {contents, whole_contents(named_tensor{"0.bias", tensor::zeros({1})})}, pool);
  };
  auto first = columns(0, {0, 1, 3, 4}), second = columns(2, {2, 5});
  for (const auto& given : {std::vector{first, second}, std::vector{second, first}}) {
    auto weights = detail::unpack_weights(given);
    REQUIRE(weights.size() == 2);
    CHECK(same_bits(weights[0].value, tensor::full({1}, 7)));
    CHECK(same_bits(weights[1].value, whole));
    CHECK(same_bits(detail::weights_in(given)[1].value, whole));
  }
  CHECK_THROWS_WITH(detail::unpack_weights({second}), ContainsSubstring("[0:2, 0:2] of 0.weight"));
  auto has_all = pack_state({{"0.weight", whole}}, pool);
  CHECK(same_bits(detail::unpack_weights({second, has_all})[1].value, whole));
}

TEST_CASE("a writable file gives no reason, and no test file is left behind") {
  temp_folder folder;
  CHECK(detail::why_not_writable(folder.path() / "model", 1000).empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a file that cannot be written is reported before the write") {
  temp_folder folder;
  CHECK_THAT(detail::why_not_writable(folder.path() / "no" / "model", 1),
             ContainsSubstring("there is no folder"));
  CHECK_THAT(detail::why_not_writable("/dev/null", 1), ContainsSubstring("a device"));
  CHECK_THAT(detail::why_not_writable(folder.path(), 1), ContainsSubstring("a folder"));
  CHECK_THAT(detail::why_not_writable(folder.path() / "model", std::uint64_t{1} << 60),
             ContainsSubstring("room for"));
}
