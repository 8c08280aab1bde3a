#include "troupe/pipeline/detail/agreement/describe_plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

agreement::job_description described(const plan& of) {
  agreement::job_description made;
  detail::describe_plan(of, made);
  return made;
}

std::string difference(const plan& of_rank_0, const plan& of_rank_1) {
  return agreement::description_difference({{0, described(of_rank_0)}, {1, described(of_rank_1)}})
      .value_or("none");
}

}  // namespace

TEST_CASE("equal plans are described alike, and others have another hash") {
  auto drawn = make_plan({schedule_kind::one_f_one_b, 4, 8, 4, {{0, 3}}});
  CHECK(difference(drawn, drawn) == "none");
  for (auto change : {+[](plan& other) { std::swap(other.devices[2][5], other.devices[2][6]); },
                      +[](plan& other) {
                        other.reductions = {{0, 2}};
                      },
                      +[](plan& other) {
                        other.device_of_stage = {0, 1, 3, 2};
                      },
                      +[](plan& other) { other.edges.pop_back(); }}) {
    auto other = drawn;
    change(other);
    CHECK_THAT(difference(drawn, other), ContainsSubstring("hash of the plan: rank 1 has "));
  }
}

TEST_CASE("the difference of two plans names the device and shows its actions") {
  auto one = make_plan({schedule_kind::gpipe, 2, 2, 2});
  auto other = one;
  std::swap(other.devices[1][1], other.devices[1][2]);
  CHECK_THAT(
      difference(one, other),
      ContainsSubstring("; plan of device 1: rank 1 has 1F0 1B0 1F1 1B1 1A, rank 0 has 1F0 1F1 1B0 1B1 1A") &&
          !ContainsSubstring("device 0"));
}

TEST_CASE("long lists are cut, and a difference behind the cut shows in the hash") {
  auto one = make_plan({schedule_kind::gpipe, 2, 500, 2});
  auto other = one;
  std::swap(other.devices[0][700], other.devices[0][701]);
  auto text = difference(one, other);
  CHECK_THAT(text, ContainsSubstring("plan of device 0: rank 1 has 0F0 0F1 ") &&
                       ContainsSubstring("... (1001, hash "));
  CHECK(text.size() < 600);
}
