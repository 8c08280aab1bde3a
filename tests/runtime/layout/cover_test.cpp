#include "troupe/layout/cover.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cereal/types/optional.hpp>

#include "drawn_contents.hpp"
#include "troupe/wire/codec.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::layout;
using namespace troupe::testing;

namespace {

using pieces = std::vector<std::pair<part_id, tensor_contents>>;

std::string problem_of_pieces(const pieces& all) {
  std::vector<part_contents> parts;
  for (const auto& [part, held] : all) parts.push_back({part, {&held, 1}});
  return cover_problem(parts);
}

/// A matrix of 4 rows of 6, of which the part holds these rows.
tensor_contents rows(std::int64_t begin, std::int64_t end) {
  return {"0.weight", dtype::f32, {4, 6}, {{{begin, 0}, {end - begin, 6}}}, 0, (end - begin) * 6};
}

part_id part(int stage, int replica = 0, int slice = 0, int shard = 0) {
  return {{stage, replica, slice}, shard};
}

}  // namespace

TEST_CASE("drawn pieces cover their tensor, and without any one of them, or with it twice, they do not") {
  std::mt19937_64 random(3);
  for (int drawn = 0; drawn < 2000; ++drawn) {
    INFO("drawn " << drawn);
    auto whole = drawn_shape(random);
    auto all = drawn_pieces("0.weight", whole, 0, random);
    REQUIRE(problem_of_pieces(all).empty());
    auto which = random() % all.size();
    if (all[which].second.begin == all[which].second.end) continue;
    auto less = all;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(which));
    if (!less.empty()) {
      CHECK_THAT(problem_of_pieces(less), ContainsSubstring("no part holds ["));
    }
    if (problem_of_pieces({all[which]}).empty()) continue;  // shards may hold all of it alike
    auto more = all;
    more.push_back(all[which]);
    more.back().first.shard = 9;
    CHECK_THAT(problem_of_pieces(more), ContainsSubstring("0.weight") && ContainsSubstring("is held twice") &&
                                            ContainsSubstring("shard 9"));
  }
}

TEST_CASE("what is missing or double is named with its box and the parts") {
  CHECK(problem_of_pieces({{part(1), rows(0, 4)}}).empty());
  CHECK(problem_of_pieces({{part(1), rows(0, 1)}, {part(1, 0, 0, 1), rows(2, 4)}}) ==
        "no part holds [1:2, 0:6] of 0.weight (f32[4, 6]) in stage 1");
  CHECK(problem_of_pieces({{part(1), rows(0, 3)}, {part(1, 0, 0, 1), rows(2, 4)}}) ==
        "0.weight (f32[4, 6]) is held twice: [2:3, 0:6] by stage 1 and by stage 1 shard 1");
  auto overlapping = rows(0, 4);
  overlapping.boxes = {{{0, 0}, {2, 6}}, {{1, 0}, {2, 6}}};
  CHECK_THAT(problem_of_pieces({{part(1), overlapping}}), ContainsSubstring("is held twice: [1:3, 0:6]"));
}

TEST_CASE("shards may hold a tensor alike, or its elements together") {
  CHECK(problem_of_pieces({{part(1), rows(0, 4)}, {part(1, 0, 0, 1), rows(0, 4)}}).empty());
  CHECK(problem_of_pieces({{part(1), rows(0, 1)}, {part(1, 0, 0, 1), rows(1, 4)}}).empty());
  CHECK_THAT(problem_of_pieces({{part(1), rows(0, 4)}, {part(1, 0, 0, 1), rows(1, 4)}}),
             ContainsSubstring("is held twice: [1:4, 0:6]"));
}

TEST_CASE("stages and slices may hold a tensor alike, each of them all of it") {
  CHECK(problem_of_pieces({{part(0), rows(0, 4)}, {part(3), rows(0, 4)}}).empty());
  CHECK(problem_of_pieces({{part(0), rows(0, 4)}, {part(0, 0, 1), rows(0, 4)}}).empty());
  CHECK_THAT(problem_of_pieces({{part(0), rows(0, 4)}, {part(3), rows(0, 3)}}),
             ContainsSubstring("no part holds [3:4, 0:6]") && ContainsSubstring("in stage 3"));
}

TEST_CASE("each replica that has a tensor has all of it") {
  CHECK(problem_of_pieces({{part(0), rows(0, 4)}, {part(0, 1), rows(0, 4)}}).empty());
  CHECK_THAT(problem_of_pieces({{part(0), rows(0, 4)}, {part(0, 1), rows(0, 2)}}),
             ContainsSubstring("in stage 0 replica 1"));
  auto of_replica = rows(0, 4);
  of_replica.replica = 1;
  CHECK(problem_of_pieces({{part(0, 1), of_replica}}).empty());
  CHECK(problem_of_pieces({{part(0, 2), of_replica}}) == "stage 0 replica 2 holds 0.weight of replica 1");
}

TEST_CASE("contents that cannot be, and tensors that are not the same, are named") {
  auto outside = rows(0, 4);
  outside.boxes[0].offset[0] = 1;
  CHECK_THAT(problem_of_pieces({{part(2), outside}}), ContainsSubstring("stage 2: a box of 0.weight"));
  auto beyond = rows(0, 4);
  beyond.end = 25;
  CHECK_THAT(problem_of_pieces({{part(2), beyond}}), ContainsSubstring("elements 0 to 25 of 0.weight"));
  auto many = rows(0, 4);
  many.boxes.assign(3, many.boxes[0]);
  CHECK_THAT(problem_of_pieces({{part(2), many}}), ContainsSubstring("more elements"));
  auto shapeless = rows(0, 4);
  shapeless.whole = {-1, 6};
  CHECK_THAT(problem_of_pieces({{part(2), shapeless}}), ContainsSubstring("0.weight has no shape"));
  auto deep = rows(0, 4);
  deep.whole.assign(1'000'000, 1);
  deep.whole.back() = 2;
  deep.boxes = {whole_box(shape(deep.whole))};
  deep.end = 1;
  CHECK_THAT(problem_of_pieces({{part(2), deep}}), ContainsSubstring("0.weight has 1000000 axes"));
  auto other = rows(0, 4);
  other.type = dtype::bf16;
  CHECK(problem_of_pieces({{part(0), rows(0, 4)}, {part(1), other}}) ==
        "0.weight (f32[4, 6]) of stage 0 is 0.weight (bf16[4, 6]) in stage 1");
}

TEST_CASE("scalars and tensors without elements are covered, and contents are decoded as they were encoded") {
  tensor scalar = tensor::full({}, 1), none = tensor::empty({0, 4});
  CHECK(problem_of_pieces({{part(0), whole_contents(named_tensor{"s", scalar})},
                           {part(0), whole_contents(named_tensor{"n", none})}})
            .empty());
  auto held = rows(1, 3);
  held.replica = 2;
  CHECK(wire::decode<tensor_contents>(wire::encode(held)) == held);
  CHECK(wire::decode<part_id>(wire::encode(part(1, 2, 3, 4))) == part(1, 2, 3, 4));
  CHECK(stored_shape(held) == shape({2, 6}));
  held.begin = 5;
  CHECK(stored_shape(held) == shape({7}));
  CHECK(boxes_held(held) == std::vector<box>{{{1, 5}, {1, 1}}, {{2, 0}, {1, 6}}});
}
