#include "troupe/execution/inbox/inbox.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::execution;

namespace {

transport::tensor_tag tag_of(std::uint64_t generation, std::uint64_t step, std::uint32_t microbatch = 0,
                             transport::tensor_role role = transport::tensor_role::activation) {
  return {generation, step, 0, 1, microbatch, role};
}

float value_of(const std::optional<tensor>& held) { return held ? held->values<float>()[0] : -1; }

}  // namespace

TEST_CASE("a tensor is taken once, by all of its tag") {
  inbox box;
  box.begin_generation(1);
  box.put(tag_of(1, 5, 2), tensor::full({1}, 7));
  auto with = [](auto change) {
    auto tag = tag_of(1, 5, 2);
    change(tag);
    return tag;
  };
  CHECK_FALSE(box.take(with([](transport::tensor_tag& tag) { tag.generation = 2; })));
  CHECK_FALSE(box.take(with([](transport::tensor_tag& tag) { tag.step = 6; })));
  CHECK_FALSE(box.take(with([](transport::tensor_tag& tag) { tag.call = 1; })));
  CHECK_FALSE(box.take(with([](transport::tensor_tag& tag) { tag.stage = 0; })));
  CHECK_FALSE(box.take(with([](transport::tensor_tag& tag) { tag.microbatch = 1; })));
  CHECK_FALSE(
      box.take(with([](transport::tensor_tag& tag) { tag.role = transport::tensor_role::gradient; })));
  CHECK(value_of(box.take(tag_of(1, 5, 2))) == 7);
  CHECK_FALSE(box.take(tag_of(1, 5, 2)));
}

TEST_CASE("tensors of an older generation are dropped and counted") {
  inbox box;
  box.begin_generation(3);
  box.put(tag_of(2, 5), tensor::full({1}, 7));
  CHECK(box.num_stale() == 1);
  CHECK_FALSE(box.take(tag_of(2, 5)));
}

TEST_CASE("tensors of a newer generation are held until the device is in that generation") {
  inbox box;
  box.begin_generation(1);
  box.put(tag_of(2, 5), tensor::full({1}, 7));
  box.put(tag_of(3, 5), tensor::full({1}, 8));
  box.begin_generation(2);
  CHECK(box.num_stale() == 0);
  CHECK(value_of(box.take(tag_of(2, 5))) == 7);
  box.begin_generation(3);
  CHECK(value_of(box.take(tag_of(3, 5))) == 8);
}

TEST_CASE("tensors left over from older generations are dropped, whatever their tag") {
  inbox box;
  box.begin_generation(1);
  transport::tensor_tag greatest{1, ~0ull, ~0u, ~0u, ~0u, transport::tensor_role::snapshot_part};
  box.put(greatest, tensor::full({1}, 1));
  box.put(tag_of(1, 0), tensor::full({1}, 2));
  box.put(tag_of(2, 0), tensor::full({1}, 3));
  box.begin_generation(2);
  CHECK(box.num_stale() == 2);
  CHECK_FALSE(box.take(greatest));
  CHECK(value_of(box.take(tag_of(2, 0))) == 3);
}

TEST_CASE("a tensor that arrives twice is an error that names it, but not in another generation") {
  inbox box;
  box.put(tag_of(1, 5, 2), tensor::full({1}, 7));
  CHECK_NOTHROW(box.put(tag_of(2, 5, 2), tensor::full({1}, 7)));
  try {
    box.put(tag_of(1, 5, 2), tensor::full({1}, 7));
    FAIL("a second tensor was accepted");
  } catch (const std::logic_error& problem) {
    CHECK(std::string(problem.what()).find("stage 1, microbatch 2, step 5") != std::string::npos);
  }
}

TEST_CASE("the number of tensors that no action takes is bounded") {
  inbox held;
  held.begin_generation(1);
  transport::tensor_tag tag{.generation = 1};
  for (std::size_t i = 0; i < inbox::max_held; ++i) {
    tag.step = i;
    held.put(tag, {});
  }
  tag.step = inbox::max_held;
  CHECK_THROWS_AS(held.put(tag, {}), std::logic_error);
}
