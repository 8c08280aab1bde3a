#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

double sent(int from, std::int64_t number, std::int64_t i) {
  return static_cast<double>((from * 17 + number * 5 + i) % 97);
}

void ring_of_messages(members& given) {
  auto& group = given.all;
  if (group.size() == 1) return;
  int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  for (auto type : moved_types)
    for (auto count : case_sizes(type)) {
      auto out = filled(
          count, type, [&](std::int64_t i) { return sent(group.rank(), 0, i); }, placement::shifted);
      auto in = placed(count, type);
      auto sending = group.send(out, next);
      group.receive(in, before).wait();
      sending.wait();
      expect_elements(in, [&](std::int64_t i) { return sent(before, 0, i); });
    }
}

/// Each member sends to all others before it waits, each in another order.
void crossing_messages(members& given) {
  auto& group = given.all;
  for (std::int64_t count : {1, 1500, 40001}) {
    std::vector<work> running;
    std::vector<tensor> received(static_cast<std::size_t>(group.size()));
    for (int i = 1; i < group.size(); ++i) {
      int peer = (group.rank() + i) % group.size();
      running.push_back(group.send(
          filled(count, dtype::f32, [&](std::int64_t at) { return sent(group.rank(), peer, at); }), peer));
    }
    for (int i = 1; i < group.size(); ++i) {
      int peer = (group.rank() + group.size() - i) % group.size();
      auto& in = received[static_cast<std::size_t>(peer)];
      in = placed(count, dtype::f32);
      running.push_back(group.receive(in, peer));
    }
    for (auto& each : running) each.wait();
    for (int peer = 0; peer < group.size(); ++peer)
      if (peer != group.rank())
        expect_elements(received[static_cast<std::size_t>(peer)],
                        [&](std::int64_t at) { return sent(peer, group.rank(), at); });
  }
}

/// Messages of a pair arrive in the order in which they were sent, small and large ones mixed, while
/// collective calls run.
void messages_in_order(members& given) {
  auto& group = given.all;
  if (group.size() == 1) return;
  auto size_of = [](std::int64_t number) { return number % 3 == 0 ? 5000 : number; };
  std::vector<work> running;
  std::vector<tensor> received;
  for (std::int64_t number = 0; number < 40; ++number) {
    auto count = size_of(number);
    if (group.rank() == 0) {
      running.push_back(
          group.send(filled(count, dtype::i32, [&](std::int64_t i) { return sent(0, number, i); }), 1));
    } else if (group.rank() == 1) {
      received.push_back(placed(count, dtype::i32));
      running.push_back(group.receive(received.back(), 0));
    }
    if (number % 10 == 0) running.push_back(group.barrier());
  }
  for (auto& each : running) each.wait();
  for (std::size_t number = 0; number < received.size(); ++number)
    expect_elements(received[number],
                    [&](std::int64_t i) { return sent(0, static_cast<std::int64_t>(number), i); });
}

}  // namespace

std::vector<collective_case> message_cases() {
  return {{"messages go around a ring", ring_of_messages},
          {"each member sends to all others before it waits", crossing_messages},
          {"messages arrive in order while collective calls run", messages_in_order}};
}

}  // namespace troupe::testing
