#include "bench/data_parallel/named_communicator.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "troupe/ops/tree_reduction.hpp"
#include "troupe/transport/ucx_transport/ucx_transport.hpp"

using namespace troupe;
using bench::call_name;
using bench::named_communicator;

namespace {

constexpr int num_members = 3, num_buckets = 5;
constexpr std::uint64_t num_actions = 3;

named_communicator::transport_maker transport_of(int rank) {
  return [rank](transport::transport_events& events) {
    transport::ucx_transport_options options;
    options.rank = rank;
    options.world_size = num_members;
    options.secret = std::vector<std::byte>(32, std::byte{7});
    return make_ucx_transport(options, events);
  };
}

/// The first has fewer elements than members, the last ones travel by rendezvous or are read in place.
std::int64_t elements_of(int bucket) { return bucket == 0 ? 2 : std::int64_t{7} << (4 * bucket); }
dtype type_of(int bucket) { return bucket == 1 ? dtype::bf16 : dtype::f32; }

/// Of a size for each member: else sums are exact in any order.
tensor input_of(const call_name& name, int member) {
  constexpr std::array<double, num_members> sizes = {0.7, 3e3, 9e-4};
  auto text = std::to_string(name.action) + "/" + std::to_string(name.bucket) + "/" + std::to_string(member);
  return testing::random_tensor({elements_of(name.bucket)}, text, type_of(name.bucket),
                                sizes[static_cast<std::size_t>(member)]);
}

tensor sum_of(const call_name& name) {
  std::vector<tensor> inputs;
  std::vector<const std::byte*> elements;
  for (int member = 0; member < num_members; ++member)
    elements.push_back(std::as_const(inputs.emplace_back(input_of(name, member))).bytes().data());
  auto sum = tensor::empty({elements_of(name.bucket)}, type_of(name.bucket));
  auto* output = sum.bytes().data();
  tree_reduce(elements, std::span(&output, 1), sum.num_elements(), sum.dtype(), reduce_op::sum);
  return sum;
}

tensor joined(const std::vector<tensor>& parts) {
  std::int64_t total = 0;
  for (const auto& each : parts) total += each.defined() ? each.num_elements() : 0;
  auto all = tensor::empty({total}, parts.back().dtype());
  std::int64_t first = 0;
  for (const auto& each : parts) {
    if (!each.defined()) continue;
    all.rows(first, each.num_elements()).copy_from(each);
    first += each.num_elements();
  }
  return all;
}

using results = std::map<call_name, tensor>;

/// Each member begins an action's calls in an order of its own, and gives them from shared memory that it
/// writes again in the next action.
results run_member(int rank, named_communicator& group) {
  results found;
  std::map<int, tensor> memory;
  for (std::uint64_t action = 0; action < num_actions; ++action) {
    for (int i = 0; i < num_buckets; ++i) {
      auto bucket = (i * (rank + 1) + rank) % num_buckets;
      call_name name{action, bucket};
      auto& x = memory[bucket];
      if (!x.defined()) x = group.allocate_shared({elements_of(bucket)}, type_of(bucket));
      x.copy_from(input_of(name, rank));
      group.all_reduce(name, x);
      group.advance();
    }
    auto end = (action + 1) * num_buckets;
    while (found.size() < end) {
      group.take_done(
          [&](const call_name& name, const std::vector<tensor>& parts) { found[name] = joined(parts); });
      if (found.size() < end) group.wait();
    }
  }
  return found;
}

}  // namespace

TEST_CASE("named calls that members begin in other orders give the bits of the tree") {
  std::vector<std::unique_ptr<named_communicator>> members;
  std::map<int, transport::process_address> addresses;
  for (int rank = 0; rank < num_members; ++rank)
    addresses[rank] = members.emplace_back(std::make_unique<named_communicator>(transport_of(rank)))->begin();
  for (auto& each : members) each->connect(addresses);
  std::vector<results> found(num_members);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_members; ++rank)
    threads.emplace_back([&, rank] { found[rank] = run_member(rank, *members[rank]); });
  for (auto& each : threads) each.join();
  for (std::uint64_t action = 0; action < num_actions; ++action)
    for (int bucket = 0; bucket < num_buckets; ++bucket)
      for (const auto& each : found) {
        CAPTURE(action, bucket);
        CHECK(testing::same_bits(each.at({action, bucket}), sum_of({action, bucket})));
      }
}

TEST_CASE("a second call of a bucket and tensors of another form are refused") {
  named_communicator one(transport_of(0));
  one.connect({{0, one.begin()}});
  one.all_reduce({1, 2}, tensor::full({4}, 3));
  CHECK_THROWS_AS(one.all_reduce({1, 2}, tensor::full({4}, 3)), std::logic_error);
  CHECK_THROWS_AS(one.all_reduce({2, 2}, tensor::full({4}, 3)), std::logic_error);
  CHECK_THROWS_AS(one.all_reduce({1, 3}, tensor::full({2, 2}, 3)), std::logic_error);
  CHECK_THROWS_AS(one.all_reduce({1, 3}, tensor::zeros({4}, dtype::i32)), std::logic_error);
  one.advance();
  int num_taken = 0;
  one.take_done([&](const call_name& name, const std::vector<tensor>& parts) {
    ++num_taken;
    CHECK(name == call_name{1, 2});
    CHECK(testing::same_bits(joined(parts), tensor::full({4}, 3)));
  });
  CHECK(num_taken == 1);
  CHECK_NOTHROW(one.all_reduce({2, 2}, tensor::full({4}, 3)));
}
