#include "troupe/collective/calls/operation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

#define CHECK_REFUSED(call, text) \
  CHECK_THROWS_MATCHES(call, std::invalid_argument, MessageMatches(ContainsSubstring(text)))

TEST_CASE("tensors that do not fit are refused by the name of the call and of the argument") {
  auto three = tensor::zeros({3}), four = tensor::zeros({4});
  auto halves = tensor::zeros({3}, dtype::bf16);
  CHECK_REFUSED(all_reduce_of({}, three, reduce_op::sum), "[all_reduce] expected a tensor as x");
  CHECK_REFUSED(all_reduce_of(three, four, reduce_op::sum), "result of 3 elements of f32, got f32[4]");
  CHECK_REFUSED(all_reduce_of(three, halves, reduce_op::sum), "got bf16[3]");
  CHECK_REFUSED(reduce_scatter_of(four, three, {1, 3}, reduce_op::sum, 0), "result of 1 elements");
  CHECK_REFUSED(reduce_scatter_of(four, three, {2, 3}, reduce_op::sum, 1), "x of 5 elements");
  CHECK_REFUSED(all_gather_of(three, four, {3, 3}, 0), "all of 6 elements");
  CHECK_REFUSED(all_gather_of(three, four, {2, 2}, 0), "part of 2 elements");
  CHECK_REFUSED(broadcast_of({}, 0), "[broadcast]");
  CHECK_REFUSED(reduce_of(three, four, 0, reduce_op::sum), "[reduce]");
  CHECK_REFUSED(gather_of(three, four, 0, 2), "all of 6 elements");
  CHECK_REFUSED(scatter_of(four, three, 0, 2), "all of 6 elements");
  CHECK_REFUSED(all_to_all_of(three, tensor::zeros({3}), 2), "a multiple of 2 elements");
  CHECK_REFUSED(all_to_all_of(four, four, 2), "shares no memory with x");
  auto six = tensor::zeros({6});
  CHECK_REFUSED(all_to_all_of(six.rows(0, 4), six.rows(2, 4), 2), "shares no memory with x");
  CHECK_NOTHROW(all_to_all_of(six.rows(0, 2), six.rows(2, 2), 2));
  CHECK_REFUSED(send_of({}, 1), "[send]");
  CHECK_REFUSED(receive_of({}, 1), "[receive]");
  CHECK_REFUSED(require_parts({1, 2}, 3, "all_gather"), "3 part sizes >= 0, one a member, got 2 sizes");
  CHECK_REFUSED(require_parts({1, -2}, 2, "all_gather"), "the least -2");
}

TEST_CASE("calls that move elements take bool tensors, those that reduce them say what to do") {
  auto three = tensor::zeros({3}, dtype::boolean), six = tensor::zeros({6}, dtype::boolean);
  CHECK_NOTHROW(all_gather_of(three, six, {3, 3}, 0));
  CHECK_NOTHROW(broadcast_of(three, 0));
  CHECK_NOTHROW(gather_of(three, six, 0, 2));
  CHECK_NOTHROW(scatter_of(six, three, 0, 2));
  CHECK_NOTHROW(all_to_all_of(six, tensor::zeros({6}, dtype::boolean), 2));
  CHECK_NOTHROW(send_of(three, 1));
  CHECK_NOTHROW(receive_of(three, 1));
  CHECK_REFUSED(broadcast_of({}, 0), "a tensor as x");
  CHECK_REFUSED(all_reduce_of(three, three, reduce_op::max), "convert them to u8), got bool[3]");
  CHECK_REFUSED(reduce_of(three, three, 0, reduce_op::sum), "bool");
  CHECK_REFUSED(reduce_scatter_of(six, three, {3, 3}, reduce_op::sum, 0), "bool");
}

TEST_CASE("inputs and outputs that overlap anywhere but in place are refused") {
  auto memory = tensor::zeros({8});
  auto at = [&](std::int64_t first, std::int64_t count) { return memory.rows(first, count); };
  CHECK_REFUSED(all_reduce_of(at(0, 6), at(1, 6), reduce_op::sum), "[all_reduce] expected input and output");
  CHECK_REFUSED(reduce_of(at(1, 6), at(0, 6), 0, reduce_op::sum), "[reduce]");
  CHECK_REFUSED(reduce_scatter_of(at(0, 6), at(0, 2), {2, 2, 2}, reduce_op::sum, 1), "overlap elsewhere");
  CHECK_REFUSED(all_gather_of(at(1, 2), at(0, 6), {2, 2, 2}, 1), "f32[2] and f32[6] that overlap elsewhere");
  CHECK_REFUSED(gather_of(at(0, 2), at(0, 6), 1, 3), "[gather]");
  CHECK_REFUSED(scatter_of(at(0, 6), at(5, 2), 2, 3), "[scatter]");
  CHECK_NOTHROW(all_reduce_of(at(0, 6), at(0, 6), reduce_op::sum));
  CHECK_NOTHROW(all_reduce_of(at(0, 4), at(4, 4), reduce_op::sum));
  CHECK_NOTHROW(reduce_scatter_of(at(0, 6), at(1, 3), {1, 3, 2}, reduce_op::sum, 1));
  CHECK_NOTHROW(all_gather_of(at(3, 2), at(1, 6), {2, 2, 2}, 1));
  CHECK_NOTHROW(gather_of(at(2, 2), at(0, 6), 1, 3));
  CHECK_NOTHROW(scatter_of(at(0, 6), at(6, 2), 1, 3));
}

TEST_CASE("a communicator refuses tensors that its backend cannot reach") {
  auto elements = std::make_shared<std::vector<float>>(4);
  auto* bytes = reinterpret_cast<std::byte*>(elements->data());
  auto there = tensor::wrap(elements, bytes, {4}, dtype::f32, {device::kind::cuda, 1}),
       here = tensor::zeros({4});
  auto group = make_local_group(1);
  CHECK_REFUSED(group[0]->all_reduce(there),
                "[all_reduce] expected a tensor on cpu:0, where the group's backend local");
  CHECK_REFUSED(group[0]->all_gather(here, there), "f32[4] on cuda:1");
  CHECK(group[0]->device() == device{});
}

TEST_CASE("time-outs are above 0 and have no upper limit") {
  auto group = make_local_group(1, {.timeout = std::chrono::milliseconds::max()});
  CHECK_NOTHROW(group[0]->barrier().wait());
  CHECK_NOTHROW(group[0]->barrier({.timeout = std::chrono::milliseconds::max()}).wait());
  CHECK_REFUSED(group[0]->barrier({.timeout = std::chrono::milliseconds(-1)}),
                "[barrier] expected a time-out above 0, or 0 for the group's, got -1 ms");
  CHECK_REFUSED(make_local_group(1, {.timeout = std::chrono::milliseconds(0)}),
                "a time-out above 0, got 0 ms");
}

TEST_CASE("a cancelled call names its group, the rank and the call") {
  auto group = make_local_group(2);
  auto waits = group[1]->barrier();
  waits.cancel();
  CHECK_THROWS_WITH(waits.wait(), ContainsSubstring("barrier, call 1 of group ") &&
                                      ContainsSubstring("was cancelled on rank 1"));
}

TEST_CASE("a communicator refuses members that it does not have, and roots without a tensor") {
  auto group = make_local_group(2);
  auto x = tensor::zeros({4});
  CHECK_REFUSED(group[0]->broadcast(x, 2), "a member in [0, 2), got 2");
  CHECK_REFUSED(group[0]->reduce(x, {}, 0), "a tensor as result on the root");
  CHECK_REFUSED(group[0]->gather(x, {}, 0), "a tensor as all on the root");
  CHECK_REFUSED(group[0]->scatter({}, x, 0), "a tensor as all on the root");
  CHECK_REFUSED(group[0]->send(x, 0), "another member than this one");
  CHECK_REFUSED(group[0]->receive(x, -1), "a member in [0, 2), got -1");
  CHECK_REFUSED(group[0]->all_gather(x, x, {4}), "2 part sizes");
  CHECK_REFUSED(make_local_group(0), "at least one member");
}

TEST_CASE("signatures differ in everything that members must pass alike") {
  auto x = tensor::zeros({6}), two = tensor::zeros({2}), four = tensor::zeros({4});
  auto equal = all_gather_of(tensor::zeros({3}), x, {3, 3}, 0).signature;
  auto unequal = all_gather_of(two, x, {2, 4}, 0).signature;
  auto swapped = all_gather_of(four, x, {4, 2}, 0).signature;
  CHECK(equal.layout == 0);
  CHECK(unequal != equal);
  CHECK(unequal != swapped);
  CHECK(to_string(unequal).starts_with("all_gather(f32[6] in unequal parts, list "));
  CHECK(to_string(unequal) != to_string(swapped));  // an error shows what differs
  CHECK(to_string(broadcast_of(x, 1).signature) == "broadcast(f32[6], root 1)");
  CHECK(to_string(all_reduce_of(x, x, reduce_op::mean).signature) == "all_reduce(mean, f32[6])");
  CHECK(to_string(collective_operation{}.signature) == "barrier");
  CHECK(all_reduce_of(x, x, reduce_op::mean).signature != all_reduce_of(x, x, reduce_op::sum).signature);
}
