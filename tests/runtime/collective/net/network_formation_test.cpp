#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <thread>

#include "runtime/collective/cases/error_of.hpp"
#include "runtime/collective/cases/process_group.hpp"
#include "troupe/collective/net/exchange/network_fabric.hpp"
#include "troupe/ucx/ucx_context.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

using namespace std::chrono_literals;

/// Nothing here ends by the time that passes: these limits are longer than that of the test.
const communicator_options calls_without_limit{.timeout = 600s};
const network_options network_without_limit{.path = group_path::network, .answer_timeout = 600s};

void expect_text(const collective_error& error, const std::string& part) {
  expect(std::string(error.what()).find(part) != std::string::npos, part + " in: " + error.what());
}

/// The address of a process that has ended.
std::string dead_address() {
  progress_engine engine;
  auto context = make_ucx_context("tcp", "lo", ucx::rendezvous_scheme::put);
  return network_fabric(context.get(), 0ms, 0ms, engine, "127.0.0.1").address();
}

/// A store in which some processes put an address at which nobody is.
struct misleading_store final : store {
  folder_store keys;
  std::string address;

  misleading_store(const temp_folder& folder, bool misleads)
      : keys(folder.path()), address(misleads ? dead_address() : std::string()) {}
  void put(const std::string& key, std::span<const std::byte> value) override {
    bool is_changed = !address.empty() && key.starts_with("network address");
    keys.put(key, is_changed ? std::as_bytes(std::span(address)) : value);
  }
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override {
    return keys.get(key, timeout);
  }
};

}  // namespace

TEST_CASE("members that cannot connect to each other in any direction hear so at once, with the address") {
  temp_folder folder;
  spawn_ranks(2, [&](test_rank& self) {
    misleading_store place(folder, true);
    ucx_group_resources resources("token", network_without_limit);
    auto error =
        error_of([&] { make_ucx_group(world_group(self, "apart"), place, resources, calls_without_limit); });
    expect(error.kind() == collective_failure::transport, error.what());
    expect_text(error, "group apart cannot be made");
    expect_text(error, "127.0.0.1, over lo has ended");
    expect_text(error, "to rank ");
    self.barrier(1);
  });
}

TEST_CASE("a member that the others cannot reach, but that reaches them, hears so at once, and so do they") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    misleading_store place(folder, self.rank() == 1);
    ucx_group_resources resources("token", network_without_limit);
    auto error = error_of([&] {
      make_ucx_group(world_group(self, "one way"), place, resources, calls_without_limit)->barrier().wait();
    });
    expect(error.kind() == collective_failure::transport || error.kind() == collective_failure::lost_member,
           error.what());
    if (self.rank() == 1) expect_text(error, "to rank 1, 127.0.0.1, over lo has ended");
    expect_text(error, "rank 1");
    self.barrier(1);
  });
}

TEST_CASE("a name that one member still uses for a group fails on all members at once") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    auto resources = std::make_unique<ucx_group_resources>("token", network_without_limit);
    auto old = make_ucx_group(world_group(self, "again"), place, *resources, calls_without_limit);
    old->barrier().wait();
    self.barrier(1);
    if (self.rank() > 0) {  // they know nothing of the group any more
      old.reset();
      resources = std::make_unique<ucx_group_resources>("token", network_without_limit);
    }
    self.barrier(2);
    auto error =
        error_of([&] { make_ucx_group(world_group(self, "again"), place, *resources, calls_without_limit); });
    expect_text(error, "group again cannot be made: rank 0: ");
    expect_text(error, "that of a group that some member has not ended");
    self.barrier(3);
    old.reset();
    resources.reset();
    self.barrier(4);
  });
}

TEST_CASE(
    "when a stopped member makes a process end its connections, its other groups name the stopped one") {
  temp_folder folder;
  constexpr int stopped = 1, failed = 2, done = 3;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", {.path = group_path::network, .answer_timeout = 50ms});
    std::unique_ptr<communicator> of_stopped, of_others;
    if (self.rank() != 1)
      of_stopped = make_ucx_group({"with 2", {0, 2}, self.rank() / 2}, place, resources, calls_without_limit);
    if (self.rank() != 2)
      of_others = make_ucx_group({"without 2", {0, 1}, self.rank()}, place, resources, calls_without_limit);
    if (self.rank() == 2) {
      self.post(stopped);
      self.wait_for(0, done);
      return;
    }
    self.wait_for(2, stopped);
    if (self.rank() == 0) {
      self.stop(2);
      auto late = error_of([&] {
        of_stopped->all_reduce(tensor::zeros({1000000}), reduce_op::sum, {.timeout = 100ms}).wait();
      });
      expect(late.kind() == collective_failure::timed_out, late.what());
    }
    auto error = error_of([&] { of_others->barrier().wait(); });
    expect(error.kind() == collective_failure::lost_member && error.ranks() == std::vector<world_rank>{2},
           "the loss of rank 2: " + std::string(error.what()));
    expect_text(error, "rank 2 did not answer within ");
    expect_text(error, "so rank 0 ends all its connections");
    self.post(failed);
    for (int each : {0, 1}) self.wait_for(each, failed);
    if (self.rank() != 0) return;
    self.resume(2);
    self.post(done);
  });
}
