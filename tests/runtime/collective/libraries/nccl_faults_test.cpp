#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "runtime/collective/cases/elements.hpp"
#include "runtime/collective/libraries/nccl_members.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/fake_nccl/fake_nccl.hpp"
#include "troupe/collective/libraries/nccl/nccl_connection.hpp"
#include "troupe/collective/rendezvous/store.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// On this thread from its beginning to its end.
const call_options here{.timeout = 0ms, .progress = progress_by::waiter};

const collective_error cause(collective_failure::cancelled, "other", 0, {}, "a test");

tensor ones(const communicator& group) { return tensor::full({10}, 1).to(group.device()); }

void expect_text(const collective_error& error, const std::string& text) {
  expect(std::string(error.what()).find(text) != std::string::npos, text + " in: " + error.what());
}

/// Returns when so many calls of a function have been made.
void wait_for_calls(std::string_view name, std::size_t number) {
  while (fake_nccl::calls(name).size() < number) std::this_thread::yield();
}

}  // namespace

TEST_CASE("what NCCL refuses in the middle of its group fails the call, and leaves no group open") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  fake_nccl::fail_call("ncclRecv", ncclSystemError);
  auto x = ones(*group), result = ones(*group);
  auto error = failure_of([&] { group->all_to_all(x, result, here).wait(); });
  CHECK(error.kind() == collective_failure::transport);
  CHECK_THAT(error.what(), ContainsSubstring("failed on rank 0: NCCL: unhandled system error"));
  CHECK(fake_nccl::group_depth() == 0);
  group = nullptr;
  check_nccl_is_unharmed();
}

TEST_CASE("all communicators of a NCCL group are aborted together") {
  auto failures = run_nccl_members(2, [](communicator& all, store&) {
    auto x = ones(all), y = ones(all), z = ones(all);
    if (all.rank() == 1) {
      all.send(x, 0).wait();
      wait_for_calls("ncclCommAbort", 2);
      return;
    }
    all.receive(x, 1).wait();
    auto receiving = all.receive(y, 1), reducing = all.all_reduce(z);
    wait_for_calls("ncclRecv", 2);
    wait_for_calls("ncclAllReduce", 1);
    receiving.cancel();
    CHECK(failure_of([&] { receiving.wait(); }).kind() == collective_failure::cancelled);
    CHECK(failure_of([&] { reducing.wait(); }).kind() == collective_failure::cancelled);
  });
  CHECK(failures == std::vector<std::string>(2));
  for (const auto& each : fake_nccl::calls("ncclCommAbort")) CHECK(each.group_depth == 1);
  check_nccl_is_unharmed();
}

TEST_CASE("calls that groups on one GPU have in flight are aborted together") {
  auto failures = run_nccl_members(2, [](communicator& all, store& place) {
    auto on = make_nccl_connections(all.device());
    auto a = make_nccl_group({"a", {0, 1}, all.rank()}, place, on);
    auto b = make_nccl_group({"b", {0, 1}, all.rank()}, place, on);
    if (all.rank() == 1) return wait_for_calls("ncclCommAbort", 2);
    auto x = ones(all), y = ones(all);
    auto of_a = a->all_reduce(x), of_b = b->all_reduce(y);
    wait_for_calls("ncclAllReduce", 2);
    of_a.cancel();
    expect(failure_of([&] { of_a.wait(); }).kind() == collective_failure::cancelled, "the error of a");
    auto error = failure_of([&] { of_b.wait(); });
    expect(error.kind() == collective_failure::cancelled, "the error of b");
    expect(error.group() == "b", "the group of b");
    expect_text(error, "group b was aborted together with another on cuda:1");
    expect_text(error, "call 1 of group a, was cancelled on rank 0");
  });
  CHECK(failures == std::vector<std::string>(2));
  for (const auto& each : fake_nccl::calls("ncclCommAbort")) CHECK(each.group_depth == 1);
  check_nccl_is_unharmed();
}

TEST_CASE("one thread that waits for the calls of groups on one GPU aborts both together") {
  auto failures = run_nccl_members(2, [](communicator& all, store& place) {
    auto on = make_nccl_connections(all.device());
    auto a = make_nccl_group({"a", {0, 1}, all.rank()}, place, on);
    auto b = make_nccl_group({"b", {0, 1}, all.rank()}, place, on);
    if (all.rank() == 1) return wait_for_calls("ncclCommAbort", 2);
    auto x = ones(all), y = ones(all);
    auto of_a = a->all_reduce(x, reduce_op::sum, here), of_b = b->all_reduce(y, reduce_op::sum, here);
    wait_for_calls("ncclAllReduce", 2);
    a->abort("a test");
    b->abort("a test");
    expect_text(failure_of([&] { of_a.wait(); }), "group a was aborted on rank 0: a test");
    expect_text(failure_of([&] { of_b.wait(); }), "group b was aborted on rank 0: a test");
  });
  CHECK(failures == std::vector<std::string>(2));
  CHECK(fake_nccl::calls("ncclGroupEnd").size() == 1);
  check_nccl_is_unharmed();
}

TEST_CASE("calls that end by themselves are not aborted with another group on their GPU") {
  std::atomic<communicator*> aborted = nullptr;
  auto failures = run_nccl_members(2, [&](communicator& all, store& place) {
    auto on = make_nccl_connections(all.device(), 1min);
    auto a = make_nccl_group({"a", {0, 1}, all.rank()}, place, on);
    auto b = make_nccl_group({"b", {0, 1}, all.rank()}, place, on);
    auto x = ones(all), y = ones(all);
    if (all.rank() == 0) {
      auto of_b = b->all_reduce(y, reduce_op::sum, here);
      auto of_a = a->all_reduce(x);
      wait_for_calls("ncclAllReduce", 2);
      aborted = a.get();
      a->abort("a test");
      of_b.wait();
    } else {
      // The call of b can end only after a has begun to abort.
      while (aborted == nullptr || !aborted.load()->failure()) std::this_thread::yield();
      b->all_reduce(y, reduce_op::sum, here).wait();
    }
    b->all_reduce(y).wait();
    expect_elements(y.to({}), [](std::int64_t) { return 4; });
  });
  CHECK(failures == std::vector<std::string>(2));
  CHECK(fake_nccl::calls("ncclCommAbort").size() == 1);
  check_nccl_is_unharmed();
}

TEST_CASE("a communicator that still connects when the time is over is aborted") {
  fake_nccl::set_never_ready(true);
  memory_store place;
  auto error = failure_of([&] { nccl_member(place, 1, 0, {.timeout = 20ms}); });
  CHECK(error.kind() == collective_failure::timed_out);
  CHECK(fake_nccl::calls("ncclCommAbort").size() == 1);
  CHECK(fake_nccl::calls("ncclCommFinalize").empty());
  check_nccl_is_unharmed();
}

TEST_CASE("a communicator that still connects when a member is lost is aborted") {
  fake_nccl::set_never_ready(true);
  memory_store below;
  checked_store place(below, [] {
    if (!fake_nccl::calls("ncclCommInitRankConfig").empty())
      throw collective_error(collective_failure::lost_member, "all", 0, {1}, "rank 1 was lost");
  });
  CHECK(failure_of([&] { nccl_member(place, 1, 0); }).ranks() == std::vector<world_rank>{1});
  CHECK(fake_nccl::calls("ncclCommFinalize").empty());
  check_nccl_is_unharmed();
}

TEST_CASE("a communicator that could not connect is aborted") {
  memory_store place;
  fake_nccl::set_never_ready(true);
  std::thread failing([] {
    wait_for_calls("ncclCommInitRankConfig", 1);
    fake_nccl::fail_communicators(ncclRemoteError);
  });
  auto error = failure_of([&] { nccl_member(place, 1, 0); });
  failing.join();
  CHECK(error.kind() == collective_failure::transport);
  CHECK_THAT(error.what(),
             ContainsSubstring("group all cannot begin over NCCL: NCCL: remote process exited"));
  CHECK(fake_nccl::calls("ncclCommFinalize").empty());
  check_nccl_is_unharmed();
}

TEST_CASE("a NCCL group ends in peace, each communicator when NCCL is done with it") {
  fake_nccl::set_num_in_progress(4);
  memory_store place;
  nccl_member(place, 1, 0);
  CHECK(fake_nccl::calls("ncclCommDestroy").size() == 1);
  CHECK(fake_nccl::calls("ncclCommAbort").empty());
  check_nccl_is_unharmed();
}

TEST_CASE("a communicator whose end NCCL never comes to is aborted") {
  fake_nccl::set_never_finalized(true);
  memory_store place;
  nccl_member(place, 1, 0, {.timeout = 1s});
  CHECK(fake_nccl::calls("ncclCommDestroy").empty());
  CHECK(fake_nccl::calls("ncclCommAbort").size() == 1);
  check_nccl_is_unharmed();
}

TEST_CASE("an aborted NCCL connection does not connect again") {
  memory_store place;
  auto on = make_nccl_connections(gpu_of_member(0));
  nccl_connection one(on, place, {"key", 1, 0}, 1min);
  while (!one.is_ready()) {
  }
  on->abort({&one}, cause);
  on->abort({&one}, cause);
  CHECK(fake_nccl::calls("ncclCommAbort").size() == 1);
  CHECK_THROWS_AS(one.is_ready(), nccl_error);
  CHECK(fake_nccl::calls("ncclCommInitRankConfig").size() == 1);
}

TEST_CASE("NCCL's groups make no GPU their thread's current one for longer than a call") {
  auto failures = run_nccl_members(2, [](communicator& all, store&) {
    cudaSetDevice(3);
    auto x = ones(all);
    all.all_reduce(x, reduce_op::sum, here).wait();
    all.all_reduce(x).wait();
    int gpu = -1;
    cudaGetDevice(&gpu);
    expect(gpu == 3, "the thread's own GPU");
    expect_elements(x.to({}), [](std::int64_t) { return 4; });
  });
  CHECK(failures == std::vector<std::string>(2));
  for (const auto& each : fake_nccl::calls("ncclAllReduce")) CHECK(each.gpu < 3);
  check_nccl_is_unharmed();
}

TEST_CASE("a NCCL connection uses its own GPU alone, on threads that have chosen none") {
  auto on_new_thread = [](const std::function<void()>& body) { std::thread(body).join(); };
  memory_store place;
  auto on = make_nccl_connections(gpu_of_member(0));
  for (bool is_aborted : {false, true}) {
    std::unique_ptr<nccl_connection> one;
    on_new_thread([&] {
      one = std::make_unique<nccl_connection>(on, place, nccl_endpoint{"key", 1, 0}, 1min);
    });
    on_new_thread([&] {
      while (!one->is_ready()) std::this_thread::yield();
    });
    on_new_thread([&] { one->issue([] {}); });
    on_new_thread([&] { one->mark_end(); });
    on_new_thread([&] {
      while (!one->has_ended()) std::this_thread::yield();
    });
    if (is_aborted) on_new_thread([&] { on->abort({one.get()}, cause); });
    on_new_thread([&] { one = nullptr; });
  }
  CHECK_FALSE(emulation::has_context(0));
  check_nccl_is_unharmed();
}

TEST_CASE("NCCL's groups make no context on a GPU that is none of theirs") {
  auto failures = run_nccl_members(2, [](communicator& all, store&) {
    auto x = ones(all);
    for (int i = 0; i < 3; ++i) all.all_reduce(x).wait();  // by the engine's thread too
    all.rank() == 0 ? all.send(x, 1).wait() : all.receive(x, 0).wait();
  });
  CHECK(failures == std::vector<std::string>(2));
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE("a wait for NCCL leaves no error of CUDA to the thread that waited") {
  memory_store place;
  auto group = nccl_member(place, 1, 0);
  auto x = ones(*group);
  group->all_reduce(x, reduce_op::sum, here).wait();
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("what CUDA refuses in a call over NCCL fails the group by name, on every member") {
  std::atomic<bool> is_refused = false;
  const call_options limited{.timeout = 2s, .progress = progress_by::waiter};
  auto failures = run_nccl_members(2, [&](communicator& all, store&) {
    auto x = ones(all);
    all.barrier().wait();
    if (all.rank() == 1) is_refused.wait(false);
    if (all.rank() == 0) emulation::fail_call("cudaStreamWaitEvent", cudaErrorIllegalAddress);
    auto error = failure_of([&] { all.all_reduce(x, reduce_op::sum, limited).wait(); });
    expect_text(error, "all_reduce(sum, f32[10])");
    expect_text(error, "failed on rank 0: CUDA: ");
    expect(error.kind() == collective_failure::transport, "rank 0's failure");
    is_refused = true;
    is_refused.notify_all();
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
}

TEST_CASE("a message's communicator that cannot be made fails the group by name") {
  auto failures = run_nccl_members(2, [](communicator& all, store&) {
    if (all.rank() == 1) return;
    auto x = ones(all);
    emulation::fail_call("cudaEventCreateWithFlags", cudaErrorMemoryAllocation);
    auto error = failure_of([&] { all.send(x, 1, here).wait(); });
    expect(error.kind() == collective_failure::transport, error.what());
    expect_text(error, "send(f32[10]");
    expect_text(error, "CUDA: out of memory");
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
}

TEST_CASE("a NCCL group that CUDA or NCCL refuses to begin says so") {
  memory_store place;
  SECTION("CUDA") { emulation::fail_call("cudaEventCreateWithFlags", cudaErrorMemoryAllocation); }
  SECTION("NCCL") { fake_nccl::fail_call("ncclGetUniqueId", ncclSystemError); }
  auto error = failure_of([&] { nccl_member(place, 1, 0); });
  CHECK(error.kind() == collective_failure::transport);
  CHECK_THAT(error.what(), ContainsSubstring("group all cannot begin over NCCL: "));
  check_nccl_is_unharmed();
}

TEST_CASE("a unique id of NCCL that was not written whole is refused") {
  memory_store place;
  std::byte one{};
  place.put("nccl/" + group_description{"all", {0, 1}, 1}.key() + "/from/-1/to/-1", {&one, 1});
  auto error = failure_of([&] { nccl_member(place, 2, 1); });
  CHECK_THAT(error.what(),
             ContainsSubstring("expected a unique id of 128 bytes") && ContainsSubstring("got 1"));
}

TEST_CASE("a NCCL group whose network fails in a call says what NCCL says") {
  auto failures = run_nccl_members(2, [](communicator& all, store& place) {
    if (all.rank() == 1) {
      place.put("rank 1 has begun", {});
      return wait_for_calls("ncclCommAbort", 1);
    }
    auto x = ones(all);
    auto running = all.all_reduce(x);
    wait_for_calls("ncclAllReduce", 1);
    expect(place.get("rank 1 has begun", 1min).has_value(), "the other member");
    fake_nccl::fail_communicators(ncclRemoteError);
    auto error = failure_of([&] { running.wait(); });
    expect(error.ranks() == std::vector<world_rank>{1}, "the member that says nothing");
    expect_text(error, "remote process exited");
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
}

TEST_CASE("a NCCL group that goes with calls in flight aborts them, and they touch nothing later") {
  auto failures = run_nccl_members(2, [](communicator& all, store& place) {
    auto group =
        make_nccl_group({"short-lived", {0, 1}, all.rank()}, place, make_nccl_connections(all.device()));
    auto x = ones(all);
    if (all.rank() == 0) {
      auto running = group->all_reduce(x);
      wait_for_calls("ncclAllReduce", 1);
      group = nullptr;
      x.fill_zero();
      place.put("the group of rank 0 has ended", {});
    } else {
      // Not only ncclCommAbort(): it takes effect at the end of NCCL's group.
      expect(place.get("the group of rank 0 has ended", 1min).has_value(), "the end");
      auto error = failure_of([&] { group->all_reduce(x, reduce_op::sum, {.timeout = 2s}).wait(); });
      expect(error.kind() == collective_failure::cancelled, error.what());
      expect_text(error, "rank 0");
      group = nullptr;
    }
    all.barrier().wait();
    expect_elements(x.to({}), [&](std::int64_t) { return all.rank(); });
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
}

TEST_CASE("a NCCL group takes the longest time-out there is") {
  fake_nccl::set_num_in_progress(3);
  memory_store place;
  auto group = nccl_member(place, 1, 0, {.timeout = std::chrono::milliseconds::max()});
  auto x = ones(*group);
  group->all_reduce(x).wait();
  group = nullptr;
  check_nccl_is_unharmed();
}
