#include "bench/collective/group_calls.hpp"

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

void send_to(int to, communicator& group, const tensor& x) {
  auto from = 1 - to;
  if (group.rank() == from) group.send(x, to, waiter_progress).wait();
  if (group.rank() == to) group.receive(x, from, waiter_progress).wait();
}

/// The member's own of as many equal rows as there are members.
tensor own_rows(const communicator& group, const tensor& x) {
  return x.reshape({group.size(), x.num_elements() / group.size()}).rows(group.rank(), 1);
}

}  // namespace

std::function<void()> make_group_call(communicator& group, const std::string& operation, const tensor& x) {
  constexpr auto sum = reduce_op::sum;
  if (operation == "all_reduce") return [&group, x] { group.all_reduce(x, sum, waiter_progress).wait(); };
  if (operation == "all_gather")
    return [&group, x, part = own_rows(group, x)] { group.all_gather(part, x, waiter_progress).wait(); };
  if (operation == "reduce_scatter")
    return [&group, x, part = own_rows(group, x)] {
      group.reduce_scatter(x, part, sum, waiter_progress).wait();
    };
  if (operation == "broadcast") return [&group, x] { group.broadcast(x, 0, waiter_progress).wait(); };
  if (operation == "reduce") return [&group, x] { group.reduce(x, x, 0, sum, waiter_progress).wait(); };
  if (operation == "barrier") return [&group] { group.barrier(waiter_progress).wait(); };
  if (operation == "messages") return [&group, x] { send_to(1, group, x); };
  if (operation == "p2p")
    return [&group, x] {
      send_to(1, group, x);
      send_to(0, group, x);
    };
  throw_invalid("make_group_call",
                "all_reduce, all_gather, reduce_scatter, broadcast, reduce, barrier, p2p or messages",
                operation);
}

}  // namespace troupe::bench
