#include "troupe/contents/box.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "drawn_contents.hpp"

using namespace troupe;
using namespace troupe::layout;
using namespace troupe::testing;

namespace {

/// How often each element of `whole`, by its row-major index, is in `boxes`, in the order of these.
std::vector<std::int64_t> indices_of(const std::vector<box>& boxes, const shape& whole) {
  std::vector<std::int64_t> indices;
  for (const auto& one : boxes)
    for (std::int64_t at = 0; at < num_elements(one); ++at) {
      std::int64_t rest = at, index = 0, stride = 1;
      for (auto axis = one.extent.size(); axis-- > 0;) {
        index += (one.offset[axis] + rest % one.extent[axis]) * stride;
        rest /= one.extent[axis];
        stride *= whole.extents()[axis];
      }
      indices.push_back(index);
    }
  return indices;
}

box drawn_box(const shape& whole, std::mt19937_64& random) {
  box made;
  for (auto extent : whole.extents()) {
    made.offset.push_back(draw_below(random, extent));
    made.extent.push_back(draw_below(random, extent - made.offset.back()) + 1);
  }
  return made;
}

}  // namespace

TEST_CASE("intersection and difference of boxes are those of their elements") {
  std::mt19937_64 random(1);
  for (int drawn = 0; drawn < 3000; ++drawn) {
    auto whole = drawn_shape(random);
    auto a = drawn_box(whole, random), b = drawn_box(whole, random);
    auto in_a = indices_of({a}, whole), in_b = indices_of({b}, whole);
    std::vector<std::int64_t> both, only_a;
    std::ranges::set_intersection(in_a, in_b, std::back_inserter(both));
    std::ranges::set_difference(in_a, in_b, std::back_inserter(only_a));
    auto common = intersection(a, b);
    REQUIRE(both == (common ? indices_of({*common}, whole) : std::vector<std::int64_t>()));
    auto rest = indices_of(difference(a, b), whole);
    std::ranges::sort(rest);
    REQUIRE(rest == only_a);
  }
}

TEST_CASE("a range of a box's elements is made of boxes in the order of the elements") {
  std::mt19937_64 random(2);
  for (int drawn = 0; drawn < 3000; ++drawn) {
    auto whole = drawn_shape(random);
    auto of = drawn_box(whole, random);
    auto all = indices_of({of}, whole);
    auto begin = draw_below(random, num_elements(of) + 1);
    auto end = begin + draw_below(random, num_elements(of) - begin + 1);
    auto pieces = elements_of(of, begin, end);
    REQUIRE(indices_of(pieces, whole) == std::vector(all.begin() + begin, all.begin() + end));
    REQUIRE(pieces.size() <= 2 * whole.extents().size() + 1);
  }
}

TEST_CASE("a box is inside a shape if it has its axes and none of its indices is outside") {
  shape whole({4, 6});
  CHECK(is_inside({{0, 0}, {4, 6}}, whole));
  CHECK(is_inside({{4, 6}, {0, 0}}, whole));
  CHECK_FALSE(is_inside({{0, 1}, {4, 6}}, whole));
  CHECK_FALSE(is_inside({{-1, 0}, {1, 1}}, whole));
  CHECK_FALSE(is_inside({{0, 0}, {-1, 1}}, whole));
  CHECK_FALSE(is_inside({{0}, {4}}, whole));
  auto most = std::numeric_limits<std::int64_t>::max();
  CHECK_FALSE(is_inside({{1, 0}, {most, 1}}, whole));
  CHECK_FALSE(is_inside({{most, 0}, {most, 1}}, whole));
  CHECK(to_string(box{{0, 2}, {4, 3}}) == "[0:4, 2:5]");
  CHECK(to_string(box{}) == "[]");
}

TEST_CASE("a part is named by what is not 0") {
  CHECK(to_string(part_id{{.stage = 2}}) == "stage 2");
  CHECK(to_string(part_id{{1, 2, 3}, 4}) == "stage 1 replica 2 slice 3 shard 4");
}
