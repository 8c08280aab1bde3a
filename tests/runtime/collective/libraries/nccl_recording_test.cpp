#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <thread>

#include "runtime/collective/cases/elements.hpp"
#include "runtime/collective/libraries/nccl_members.hpp"
#include "support/fake_nccl/fake_nccl.hpp"
#include "troupe/autograd/captured_pass.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Runs work once as it is, and once more while it is recorded, which must be refused; `name` is what is.
void require_refused(device where, const std::string& name, const std::function<void()>& work) {
  captured_step step(where, work);
  step.run();
  CHECK_THROWS_MATCHES(
      step.run(), std::logic_error,
      MessageMatches(ContainsSubstring("[" + name + "] expected a call outside of captured_step's")));
  CHECK_FALSE(step.is_captured());
}

}  // namespace

TEST_CASE("calls over NCCL are refused while a step is recorded, whichever thread would run them") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  auto gpu = group->device();
  auto x = tensor::full({10}, 1).to(gpu);
  for (auto by : {progress_by::background, progress_by::waiter}) {
    const call_options options{.progress = by};
    require_refused(gpu, "all_reduce", [&] { group->all_reduce(x, reduce_op::sum, options); });
    require_refused(gpu, "barrier", [&] { group->barrier(options); });
  }
  // A graph of one GPU leaves out what is done on others too.
  require_refused(gpu_of_member(1), "broadcast", [&] { group->broadcast(x, 0); });
  group->all_reduce(x).wait();  // the group is as good as before
  expect_elements(x.to({}), [](std::int64_t) { return 1; });
  group = nullptr;
  check_nccl_is_unharmed();
}

TEST_CASE("a wait for a call over NCCL is refused while a step is recorded") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  auto x = tensor::full({10}, 1).to(group->device());
  auto running = group->all_reduce(x);
  require_refused(group->device(), "wait", [&] { running.wait(); });
  running.wait();
}

TEST_CASE("the start of a group over NCCL is refused while a step is recorded") {
  memory_store place;
  int number = 0;
  require_refused(gpu_of_member(0), "make_nccl_group", [&] {
    make_nccl_group({"group " + std::to_string(number++), {0}, 0}, place,
                    make_nccl_connections(gpu_of_member(0)));
  });
  check_nccl_is_unharmed();
}

TEST_CASE("a gradient hook that reduces over NCCL is refused while a captured pass is recorded") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  auto gpu = group->device();
  auto x = tensor::full({10}, 1).to(gpu);
  parameter weight("weight", tensor::zeros({10}, dtype::f32, gpu), tensor::zeros({10}, dtype::f32, gpu));
  work reducing;
  captured_pass pass(gpu,
                     [&] {
                       weight.gradient().copy_from(x);
                       weight.has_gradient = true;
                       reducing =
                           group->all_reduce(weight.gradient());  // what DataParallel does with each bucket
                     },
                     {&weight});
  pass.run();  // no recording yet
  reducing.wait();
  weight.has_gradient = false;
  CHECK_THROWS_MATCHES(pass.run(), std::logic_error,
                       MessageMatches(ContainsSubstring("[all_reduce] expected a call outside of") &&
                                      ContainsSubstring("call sync_gradients() after each run")));
  CHECK_FALSE(pass.is_captured());
}

TEST_CASE("other threads call over NCCL while a step is recorded, and replays do not repeat these calls") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  auto gpu = group->device();
  auto x = tensor::full({10}, 1).to(gpu), y = tensor::zeros({10}, dtype::f32, gpu);
  captured_step step(gpu, [&] {
    y.copy_from(x);
    std::thread([&] { group->all_reduce(x).wait(); }).join();
  });
  for (int run = 0; run < 3; ++run) step.run();
  CHECK(step.is_captured());
  CHECK(fake_nccl::calls("ncclAllReduce").size() == 2);  // of the runs that call the work
  expect_elements(y.to({}), [](std::int64_t) { return 1; });
  group = nullptr;
  check_nccl_is_unharmed();
}
