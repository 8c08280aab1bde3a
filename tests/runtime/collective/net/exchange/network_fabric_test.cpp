#include "troupe/collective/net/exchange/network_fabric.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/ucx/ucx_context.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

using namespace std::chrono_literals;

constexpr std::size_t large = 1 << 20;

/// Records what comes for a group, and fetches nothing.
struct recording_part final : message_owner {
  std::vector<net::message_kind> kinds;
  std::vector<void*> descriptors;
  int num_lost = 0;
  std::vector<world_rank> silent;  ///< because of which the connections end

  bool on_message(const net::message_header& header, std::span<const std::byte>, void* descriptor) override {
    kinds.push_back(header.kind);
    if (descriptor) descriptors.push_back(descriptor);
    return descriptor != nullptr;
  }
  void on_done(ucx_message& done) override { done.set_done(); }
  void on_lost(int, const std::string&) override { ++num_lost; }
  void on_ending(const std::vector<world_rank>& ranks, const std::string&) override { silent = ranks; }
  void wake() override {}
};

/// A process with two groups of two members.
struct process {
  static constexpr std::uint64_t first = 1, second = 2;
  int member;
  progress_engine engine;
  ucx::ucx_context context = make_ucx_context("tcp", "lo", ucx::rendezvous_scheme::put);
  std::unique_ptr<network_fabric> fabric;
  recording_part parts[2];
  int connection = -1;

  process(int its_member, std::chrono::milliseconds answer_timeout)
      : member(its_member),
        fabric(std::make_unique<network_fabric>(context.get(), 50ms, answer_timeout, engine)) {
    std::lock_guard lock(fabric->mutex());
    fabric->add(first, parts[0]);
    fabric->add(second, parts[1]);
  }
  /// After the parts have been removed.
  ~process() { fabric.reset(); }

  void connect(process& to) {
    auto address = to.fabric->address();
    std::lock_guard lock(fabric->mutex());
    connection = fabric->connect({to.member, 0}, address);
  }
  std::shared_ptr<ucx_message> send(std::uint64_t group, net::message_kind kind,
                                    std::span<const std::byte> bytes = {}) {
    auto sent = std::make_shared<ucx_message>();
    sent->owner = &parts[group - 1];
    sent->connection = connection;
    sent->header.group = group;
    sent->header.kind = kind;
    sent->header.from = member;
    sent->is_of_call = kind == net::message_kind::elements;
    std::lock_guard lock(fabric->mutex());
    fabric->connections().send(sent, bytes);
    return sent;
  }
  void remove(std::uint64_t group, std::map<int, ended_groups::member> others) {
    std::lock_guard lock(fabric->mutex());
    fabric->remove(group, std::move(others), true);
  }
  bool has_ended(std::uint64_t group) {
    recording_part unused;
    std::lock_guard lock(fabric->mutex());
    try {
      fabric->add(group, unused);
    } catch (const std::invalid_argument&) {
      return false;
    }
    fabric->remove(group, {}, false);
    return true;
  }
};

/// Both fabrics make progress until `is_done`; the test's deadline is that of spawn_ranks.
void run_until(process& a, process& b, const std::function<bool()>& is_done) {
  while (!is_done()) {
    a.fabric->progress_next(nullptr);
    b.fabric->progress_next(nullptr);
  }
}

template <class Value>
auto with_lock(process& of, Value value) {
  std::lock_guard lock(of.fabric->mutex());
  return value();
}

/// In a process of its own: UCX does not survive a fork, and other tests fork.
void in_child(const std::function<void()>& body) {
  spawn_ranks(1, [&](test_rank&) { body(); });
}

/// `a` sends elements of the first group, which `b` has ended.
std::shared_ptr<ucx_message> send_late(process& a, process& b, std::span<const std::byte> elements) {
  a.connect(b);
  b.connect(a);
  b.remove(process::first, {{a.member, {b.connection}}});
  auto late = a.send(process::first, net::message_kind::elements, elements);
  a.send(process::second, net::message_kind::hello);
  run_until(a, b, [&] { return with_lock(b, [&] { return !b.parts[1].kinds.empty(); }); });
  return late;
}

}  // namespace

TEST_CASE("a large message of a group that its receiver has ended is released when the sender ends it too") {
  in_child([] {
    std::vector<std::byte> elements(large);
    process a(0, 60s), b(1, 60s);
    auto late = send_late(a, b, elements);
    expect(b.parts[0].kinds.empty(), "nothing for a group that has ended");
    expect(!late->is_done(), "the message to wait");
    expect(!b.has_ended(process::first), "the group to be remembered");
    a.send(process::first, net::message_kind::failure);
    a.remove(process::first, {});
    run_until(a, b, [&] { return late->is_done(); });
    a.fabric->finish_transfers(a.parts[0]);
    expect(b.has_ended(process::first), "the group to be forgotten");
    a.send(process::second, net::message_kind::leaving);
    run_until(a, b, [&] { return with_lock(b, [&] { return b.parts[1].kinds.size() == 2; }); });
    expect(a.parts[1].num_lost == 0 && b.parts[1].num_lost == 0, "the connections to live");
  });
}

TEST_CASE("a member that does not answer ends all connections, and the process connects anew") {
  in_child([] {
    std::vector<std::byte> elements(large);
    process a(0, 20ms), b(1, 60s);
    auto late = send_late(a, b, elements);
    auto address = a.fabric->address();
    auto event = a.fabric->event_fd();
    a.remove(process::first, {});
    a.fabric->finish_transfers(a.parts[0]);
    expect(!late->is_done(), "a message that nobody has taken");
    expect(a.parts[1].num_lost == 1, "the other group to lose its member");
    expect(a.parts[1].silent == std::vector<world_rank>{1}, "the other group to hear which rank is silent");
    run_until(a, b, [&] { return with_lock(b, [&] { return b.parts[1].num_lost == 1; }); });
    expect(b.has_ended(process::first), "the group to be forgotten with the connection");
    expect(a.fabric->address() != address, "another address");
    expect(a.fabric->event_fd() == event, "the same descriptor");
    a.connect(b);
    b.connect(a);
    with_lock(b, [&] { return expect(b.fabric->num_ends_of(b.connection) == 1, "one end before"), 0; });
    a.send(process::second, net::message_kind::call_notice);
    b.send(process::second, net::message_kind::call_notice);
    auto has_come = [](process& at) {
      return with_lock(at, [&] {
        return !at.parts[1].kinds.empty() && at.parts[1].kinds.back() == net::message_kind::call_notice;
      });
    };
    run_until(a, b, [&] { return has_come(a) && has_come(b); });
  });
}

TEST_CASE("messages of a group that is not made here yet are kept for it") {
  in_child([] {
    process a(0, 60s), b(1, 60s);
    a.connect(b);
    constexpr std::uint64_t third = 3;
    a.send(process::second, net::message_kind::hello);
    auto sent = std::make_shared<ucx_message>();
    sent->connection = a.connection;
    sent->header.group = third;
    sent->header.kind = net::message_kind::hello;
    with_lock(a, [&] { return a.fabric->connections().send(sent, {}), 0; });
    a.send(process::second, net::message_kind::leaving);
    run_until(a, b, [&] { return with_lock(b, [&] { return b.parts[1].kinds.size() == 2; }); });
    recording_part made;
    with_lock(b, [&] { return b.fabric->add(third, made), 0; });
    expect(made.kinds == std::vector{net::message_kind::hello}, "the hello that came before");
    with_lock(b, [&] { return b.fabric->remove(third, {}, false), 0; });
  });
}
