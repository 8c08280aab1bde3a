#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <random>

#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

constexpr std::array types{dtype::f32, dtype::bf16, dtype::f16, dtype::i32, dtype::i64, dtype::u8};

/// Small blocks, so that small tensors take every path.
network_options small_blocks() {
  return {.path = group_path::network,
          .sizes = {.whole_inputs = 2000, .whole_broadcast = 3000, .block = 1000, .blocks_ahead = 2}};
}

/// The input of `member`: numbers whose rounded sums differ for each order.
tensor input_of(int member, std::int64_t count, dtype type) {
  auto x = tensor::empty({count}, type);
  std::minstd_rand random(static_cast<unsigned>(member) * 1000 + static_cast<unsigned>(count) + 17);
  auto number = [&] { return static_cast<float>(random() % 2001) / 64 - 10; };
  if (type == dtype::f32)
    for (auto& each : x.values<float>()) each = number();
  else if (type == dtype::bf16)
    for (auto& each : x.values<bfloat16>()) each = bfloat16(number());
  else if (type == dtype::f16)
    for (auto& each : x.values<float16>()) each = float16(number());
  else
    for (auto& each : x.bytes()) each = static_cast<std::byte>(random() % 256);
  return x;
}

tensor reduction_of(int num_members, std::int64_t count, dtype type, reduce_op op) {
  std::vector<tensor> inputs;
  std::vector<const std::byte*> places;
  for (int i = 0; i < num_members; ++i)
    places.push_back(inputs.emplace_back(input_of(i, count, type)).bytes().data());
  auto result = tensor::empty({count}, type);
  auto* place = result.bytes().data();
  tree_reduce(places, {&place, 1}, count, type, op);
  return result;
}

void expect_bits(const tensor& got, const tensor& wanted, const std::string& what) {
  auto a = got.bytes(), b = wanted.bytes();
  expect(a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin()), what + " of " + describe(wanted));
}

tensor part_of(const tensor& x, int num_members, int member) {
  auto part = x.num_elements() / num_members;
  return x.rows(member * part, part);
}

void check_reductions(communicator& group, std::int64_t count, dtype type, reduce_op op) {
  int n = group.size(), root = static_cast<int>(count) % n;
  auto wanted = reduction_of(n, n * count, type, op);
  auto x = input_of(group.rank(), n * count, type);
  auto result = tensor::empty({n * count}, type);
  group.all_reduce(x, result, op).wait();
  expect_bits(result, wanted, "all_reduce");
  expect_bits(x, input_of(group.rank(), n * count, type), "the input of all_reduce");
  auto part = tensor::empty({count}, type);
  group.reduce_scatter(x, part, op).wait();
  expect_bits(part, part_of(wanted, n, group.rank()), "reduce_scatter");
  auto reduced = group.rank() == root ? x : tensor();
  group.reduce(x, reduced, root, op).wait();
  if (group.rank() == root) expect_bits(reduced, wanted, "reduce in place");
  auto y = input_of(group.rank(), n * count, type);
  group.all_reduce(y, op).wait();
  expect_bits(y, wanted, "all_reduce in place");
}

tensor all_inputs(int num_members, std::int64_t count, dtype type) {
  auto all = tensor::empty({num_members * count}, type);
  for (int i = 0; i < num_members; ++i) part_of(all, num_members, i).copy_from(input_of(i, count, type));
  return all;
}

void check_copies(communicator& group, std::int64_t count, dtype type) {
  int n = group.size(), root = static_cast<int>(count + 1) % n;
  bool is_root = group.rank() == root;
  auto all = all_inputs(n, count, type);
  auto own = input_of(group.rank(), count, type);
  auto gathered = tensor::empty({n * count}, type);
  group.all_gather(own, gathered).wait();
  expect_bits(gathered, all, "all_gather");
  auto on_root = is_root ? tensor::empty({n * count}, type) : tensor();
  group.gather(own, on_root, root).wait();
  if (is_root) expect_bits(on_root, all, "gather");
  auto part = tensor::empty({count}, type);
  group.scatter(is_root ? all : tensor(), part, root).wait();
  expect_bits(part, own, "scatter");
  auto shown = input_of(group.rank(), n * count, type);
  group.broadcast(shown, root).wait();
  expect_bits(shown, input_of(root, n * count, type), "broadcast");
  auto exchanged = tensor::empty({n * count}, type);
  group.all_to_all(input_of(group.rank(), n * count, type), exchanged).wait();
  for (int i = 0; i < n; ++i)
    expect_bits(part_of(exchanged, n, i), part_of(input_of(i, n * count, type), n, group.rank()),
                "all_to_all");
}

void check_messages(communicator& group, std::int64_t count, dtype type) {
  int n = group.size();
  if (n == 1) return;
  int to = (group.rank() + 1) % n, from = (group.rank() + n - 1) % n;
  std::vector<work> sent;
  for (int i = 0; i < 3; ++i) sent.push_back(group.send(input_of(group.rank() + i, count, type), to));
  for (int i = 0; i < 3; ++i) {
    auto got = tensor::empty({count}, type);
    group.receive(got, from).wait();
    expect_bits(got, input_of(from + i, count, type), "a message");
  }
  for (auto& each : sent) each.wait();
}

void check_everything(communicator& group, test_rank&) {
  for (auto type : types)
    for (std::int64_t count : {0, 1, 7, 100, 501, 3000}) {
      check_reductions(group, count, type, reduce_op::sum);
      check_copies(group, count, type);
      check_messages(group, count, type);
      group.barrier().wait();
    }
  for (auto op : {reduce_op::mean, reduce_op::max, reduce_op::min, reduce_op::product})
    for (std::int64_t count : {9, 1000}) check_reductions(group, count, dtype::f32, op);
}

}  // namespace

TEST_CASE("members that exchange messages get the bits of the fixed tree and exact copies") {
  for (int count : {1, 2, 3, 4, 5}) with_ucx_group(count, small_blocks(), check_everything);
}

TEST_CASE("large tensors are reduced over the network with the default sizes", "[many]") {
#if defined(__SANITIZE_THREAD__)
  constexpr std::int64_t most = 600000;  // still more blocks than are received at a time
#else
  constexpr std::int64_t most = 1500000;
#endif
  with_ucx_group(3, {.path = group_path::network}, [](communicator& group, test_rank&) {
    for (std::int64_t count : {std::int64_t{300001}, most}) {
      check_reductions(group, count, dtype::f32, reduce_op::sum);
      check_copies(group, count, dtype::f32);
      check_messages(group, count, dtype::f32);
    }
  });
}

TEST_CASE("unequal parts are sent over the network") {
  with_ucx_group(3, small_blocks(), [](communicator& group, test_rank&) {
    std::vector<std::int64_t> parts{0, 1700, 3};
    auto own = parts[static_cast<std::size_t>(group.rank())];
    auto first = std::accumulate(parts.begin(), parts.begin() + group.rank(), std::int64_t{0});
    auto all = tensor::empty({1703});
    group.all_gather(input_of(group.rank(), own, dtype::f32), all, parts).wait();
    expect_bits(all.rows(0, 1700), input_of(1, 1700, dtype::f32), "part 1");
    expect_bits(all.rows(1700, 3), input_of(2, 3, dtype::f32), "part 2");
    auto part = tensor::empty({own});
    group.reduce_scatter(input_of(group.rank(), 1703, dtype::f32), part, parts).wait();
    expect_bits(part, reduction_of(3, 1703, dtype::f32, reduce_op::sum).rows(first, own), "the own part");
  });
}

TEST_CASE("many small broadcasts arrive in order, however far the root runs ahead") {
  with_ucx_group(2, small_blocks(), [](communicator& group, test_rank&) {
    auto x = tensor::zeros({4});
    for (int i = 0; i < 1000; ++i) {
      if (group.rank() == 0) std::ranges::fill(x.values<float>(), static_cast<float>(i));
      group.broadcast(x, 0, {.progress = progress_by::waiter}).wait();
      expect(x.values<float>()[3] == static_cast<float>(i), "the value of this round");
    }
  });
}

TEST_CASE("collectives and messages of several groups run concurrently") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", small_blocks());
    auto all = make_ucx_group(world_group(self), place, resources);
    auto again = make_ucx_group({"again", {2, 1, 0}, 2 - self.rank()}, place, resources);
    for (int i = 0; i < 20; ++i) {
      auto a = input_of(self.rank(), 5000, dtype::f32), b = input_of(2 - self.rank(), 4000, dtype::f32);
      auto first = all->all_reduce(a), second = again->all_reduce(b);
      check_messages(*all, 10 + i, dtype::f32);
      first.wait();
      second.wait();
      expect_bits(a, reduction_of(3, 5000, dtype::f32, reduce_op::sum), "the sum of one group");
      expect_bits(b, reduction_of(3, 4000, dtype::f32, reduce_op::sum), "the sum of the other one");
    }
  });
}
