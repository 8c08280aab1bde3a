#include "troupe/tensor/memory_account.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/tensor.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::Equals;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t elements = 1024;
constexpr std::size_t block_size = 4 * elements;

tensor block() { return tensor::empty({elements}, dtype::f32, device_under_test()); }

account_statistics seen(const memory_account& account) {
  return account.statistics(device_under_test().type);
}

std::size_t held(const memory_account& account, memory_use use) {
  return seen(account).by_use[static_cast<std::size_t>(use)];
}
std::size_t most(const memory_account& account, memory_use use) {
  return seen(account).peak_by_use[static_cast<std::size_t>(use)];
}

}  // namespace

TEST_CASE("an account is charged for what its scope allocates, by use, and debited when that is freed") {
  auto account = memory_account::make();
  auto before = block();
  {
    account_scope charged(account);
    auto working = block();
    tensor parameter;
    {
      memory_scope counted(memory_category::parameters);
      parameter = block();
    }
    auto copy = [&] {
      account_scope copies(account, memory_use::snapshots);
      return block();
    }();
    CHECK(held(account, memory_use::working) == block_size);
    CHECK(held(account, memory_use::parameters) == block_size);
    CHECK(held(account, memory_use::snapshots) == block_size);
    CHECK(seen(account).current == 2 * block_size);  // copies of the state apart
  }
  auto after = block();
  CHECK(seen(account).current == 0);
  CHECK(seen(account).peak == 2 * block_size);
  CHECK(most(account, memory_use::snapshots) == block_size);
}

TEST_CASE("the peak of the whole is that of the sum, not the sum of the peaks") {
  auto account = memory_account::make();
  account_scope charged(account);
  for (auto category : {memory_category::gradients, memory_category::optimizer}) {
    memory_scope counted(category);
    block();
  }
  CHECK(most(account, memory_use::gradients) + most(account, memory_use::optimizer) == 2 * block_size);
  CHECK(seen(account).peak == block_size);
}

TEST_CASE("memory that gets a category changes its use, and stays with its account") {
  auto account = memory_account::make(), other = memory_account::make();
  auto value = [&] {
    account_scope charged(account);
    return block();
  }();
  account_scope charged(other);
  value.set_memory_category(memory_category::activations);
  CHECK(held(account, memory_use::activations) == block_size);
  CHECK(held(account, memory_use::working) == 0);
  CHECK(seen(other) == account_statistics());
}

TEST_CASE("a tensor that another device takes over is charged there, once, also a part of it") {
  auto sender = memory_account::make(), receiver = memory_account::make();
  auto value = [&] {
    account_scope charged(sender);
    return block();
  }();
  {
    account_scope charged(receiver);
    charge_here(value, memory_use::messages);
    CHECK(held(receiver, memory_use::messages) == block_size);
    charge_here(value.rows(0, 1), memory_use::activations);
  }
  CHECK(seen(sender).current == 0);
  CHECK(held(receiver, memory_use::activations) == block_size);
  CHECK(seen(receiver).peak == block_size);
  charge_here(value, memory_use::messages);  // no account: it stays where it is
  CHECK(held(receiver, memory_use::activations) == block_size);
  value = {};
  CHECK(seen(receiver).current == 0);
}

TEST_CASE("memory that is not from the allocator, and undefined tensors, are charged to nobody") {
  device_under_test();
  auto account = memory_account::make();
  account_scope charged(account);
  std::byte bytes[4] = {};
  charge_here(tensor::wrap(nullptr, bytes, {1}, dtype::f32), memory_use::messages);
  charge_here({}, memory_use::messages);
  CHECK(seen(account) == account_statistics());
}

TEST_CASE("the account of a block is debited on whichever thread frees it, also when no handle is left") {
  auto account = memory_account::make();
  std::vector<tensor> held_by_others;
  {
    account_scope charged(account);
    for (int count = 0; count < 100; ++count) held_by_others.push_back(block());
  }
  CHECK(seen(account).current == 100 * block_size);
  std::thread([freed = std::move(held_by_others)]() mutable { freed.clear(); }).join();
  CHECK(seen(account).current == 0);
  auto last = [] {
    auto gone = memory_account::make();
    account_scope charged(gone);
    return block();
  }();
}

TEST_CASE("threads that charge, take over and free at once leave an account at zero") {
  auto account = memory_account::make(), other = memory_account::make();
  auto shared = [&] {
    account_scope charged(account);
    return block();
  }();
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number)
    threads.emplace_back([&, number] {
      account_scope charged(number == 0 ? account : other);
      for (int count = 0; count < 300; ++count) {
        auto own = block();
        charge_here(shared, number == 2 ? memory_use::messages : memory_use::working);
      }
    });
  for (auto& each : threads) each.join();
  CHECK(seen(account).current + seen(other).current == block_size);
  shared = {};
  CHECK(seen(account).current + seen(other).current == 0);
}

TEST_CASE("memory from elsewhere is charged while its charge lives, whichever thread ends that") {
  auto account = memory_account::make();
  std::unique_ptr<memory_charge> charge;
  {
    account_scope charged(account);
    memory_scope counted(memory_category::gradients);
    charge = std::make_unique<memory_charge>(block_size);
  }
  CHECK(account.statistics().by_use[static_cast<int>(memory_use::gradients)] == block_size);
  std::thread([&] { charge.reset(); }).join();
  CHECK(account.statistics().current == 0);
  memory_charge of_nobody(block_size);
  CHECK(account.statistics().current == 0);
}

TEST_CASE("an account tells the memory of GPUs from that of the CPU, whoever is charged for it") {
  auto where = device_under_test();
  if (where.type == device::kind::cpu) return;
  auto account = memory_account::make(), next = memory_account::make();
  std::vector<tensor> held;
  {
    account_scope charged(account);
    held = {block(), tensor::zeros({elements}), tensor::zeros({elements})};
  }
  CHECK(account.statistics(device::kind::cuda).current == block_size);
  CHECK(account.statistics().current == 2 * block_size);
  auto nobodys = block();
  {
    account_scope charged(next);
    for (const auto& each : held) charge_here(each, memory_use::messages);
    charge_here(nobodys, memory_use::messages);
  }
  CHECK(account.statistics(device::kind::cuda).current == 0);
  CHECK(next.statistics(device::kind::cuda).current == 2 * block_size);
  CHECK(next.statistics().current == 2 * block_size);
  held[0].set_memory_category(memory_category::activations);
  CHECK(next.statistics(device::kind::cuda).by_use[static_cast<int>(memory_use::activations)] == block_size);
  held.clear();
  nobodys = {};
  CHECK(
      next.statistics(device::kind::cuda) ==
      account_statistics{.peak = 2 * block_size, .peak_by_use = {0, 0, 0, 0, block_size, 2 * block_size, 0}});
}

TEST_CASE("an account refuses what would exceed its limit, and copies of the state do not count") {
  auto account = memory_account::make();
  auto where = device_under_test();
  account.set_limit(where.type, 2 * block_size);
  std::vector<tensor> held;
  auto allocate = [&](memory_use use) {
    account_scope charged(account, use);
    held.push_back(block());
  };
  for (int number = 0; number < 2; ++number) allocate(memory_use::working);
  allocate(memory_use::snapshots);
  CHECK_THROWS_MATCHES(
      allocate(memory_use::messages), bad_input,
      MessageMatches(Equals("expected at most 8192 bytes in the memory of " + to_string(where) +
                            ", the limit, got a tensor of 4096 bytes beside 8192 that are "
                            "held (working 8192)")));
  CHECK(seen(account).current == 2 * block_size);
  CHECK(block().defined());  // of no account
  held.erase(held.begin());
  allocate(memory_use::messages);
  account.set_limit(where.type, 0);
  allocate(memory_use::messages);
  CHECK(held.size() == 4);
}
