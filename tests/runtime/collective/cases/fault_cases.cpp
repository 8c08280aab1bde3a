#include "runtime/collective/cases/fault_cases.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

enum class fault { killed, stopped, late };

/// Whoever is slow for longer than a call's time-out is named as well.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t fewer_elements = 6;  // which take as long
constexpr std::chrono::milliseconds timeout{3000};
#else
constexpr std::int64_t fewer_elements = 1;
constexpr std::chrono::milliseconds timeout{1000};
#endif

/// One way for a group to fail, drawn from a seed.
struct fault_case {
  int size = 0, victim = 0, helper = 0;
  fault kind = fault::killed;
  collective_kind operation = collective_kind::all_reduce;
  std::int64_t part = 0;  ///< elements for each member
  std::chrono::microseconds moment{};
};

fault_case drawn(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](unsigned end) { return static_cast<int>(random() % end); };
  constexpr std::array<std::int64_t, 6> parts{2, 500, 3000, 40000, 400000, 1000000};
  constexpr std::array operations{collective_kind::all_reduce,     collective_kind::all_reduce,
                                  collective_kind::reduce_scatter, collective_kind::all_gather,
                                  collective_kind::broadcast,      collective_kind::all_to_all,
                                  collective_kind::barrier};
  fault_case made;
  made.size = 2 + below(4);
  made.victim = below(static_cast<unsigned>(made.size));
  made.helper = (made.victim + 1) % made.size;
  made.kind = static_cast<fault>(seed % 3);
  made.operation = operations[static_cast<std::size_t>(below(operations.size()))];
  made.part = parts[static_cast<std::size_t>(below(parts.size()))];
  if (made.part > 10000) made.part /= fewer_elements;
  made.moment = std::chrono::microseconds(below(20000));
  return made;
}

/// The tensors of a member, used in the group that fails and in the next one.
struct member_tensors {
  tensor x, y;  ///< [n * part]
  work begin(communicator& group, collective_kind what, const call_options& how = {}) {
    auto part = x.num_elements() / group.size();
    auto part_of = [&](const tensor& of) { return of.reshape({group.size(), part}).rows(group.rank(), 1); };
    switch (what) {
      case collective_kind::reduce_scatter:
        return group.reduce_scatter(x, part_of(y), reduce_op::sum, how);
      case collective_kind::all_gather:
        return group.all_gather(part_of(x), y, how);
      case collective_kind::broadcast:
        return group.broadcast(x, 0, how);
      case collective_kind::all_to_all:
        return group.all_to_all(x, y, how);
      case collective_kind::barrier:
        return group.barrier(how);
      default:
        return group.all_reduce(x, reduce_op::sum, how);
    }
  }
};

void fill(tensor& x, int rank) {
  auto values = x.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(rank + 1 + static_cast<int>(i % 5));
}

void expect_sum_of(const std::vector<world_rank>& ranks, const tensor& x, std::string_view when) {
  auto values = x.values<float>();
  auto n = static_cast<float>(ranks.size());
  auto all = n;
  for (auto rank : ranks) all += static_cast<float>(rank);
  for (std::size_t i = 0; i < values.size(); ++i)
    expect(values[i] == all + n * static_cast<float>(i % 5), when);
}

/// Repeats the call until the group fails.
collective_error error_of_calls(communicator& group, member_tensors& tensors, const fault_case& how) {
  const call_options limited{.timeout = how.kind == fault::killed ? std::chrono::minutes(5) : timeout};
  try {
    while (true) tensors.begin(group, how.operation, limited).wait();
  } catch (const collective_error& error) {
    return error;
  }
}

std::vector<world_rank> without(int size, int victim) {
  std::vector<world_rank> ranks;
  for (int i = 0; i < size; ++i)
    if (i != victim) ranks.push_back(i);
  return ranks;
}

constexpr int ready = 1, failed = 2, continues = 3, victim_done = 4, done = 5;

/// Starts a thread that kills or stops the victim at any moment of its calls.
std::thread strike(const fault_case& how, test_rank& self) {
  return std::thread([&how, &self] {
    auto moment = std::chrono::steady_clock::now() + how.moment;
    while (std::chrono::steady_clock::now() < moment) std::this_thread::yield();
    if (how.kind == fault::killed) self.kill(how.victim);
    if (how.kind == fault::stopped) self.stop(how.victim);
  });
}

void live_on(const fault_case& how, test_rank& self, folder_store& place, ucx_group_resources& resources,
             member_tensors& tensors) {
  auto ranks = without(how.size, how.victim);
  auto member = static_cast<int>(std::ranges::find(ranks, self.rank()) - ranks.begin());
  auto group = make_ucx_group(group_description{"after", ranks, member}, place, resources);
  auto sum_again = [&](std::string_view when) {
    for (auto* each : {&tensors.x, &tensors.y}) {
      fill(*each, self.rank());
      group->all_reduce(*each).wait();
      expect_sum_of(ranks, *each, when);
    }
  };
  sum_again("right bytes in the group after");
  for (auto each : ranks) {
    if (each == self.rank()) self.post(continues);
    self.wait_for(each.value(), continues);
  }
  if (self.rank() == how.helper && how.kind == fault::stopped) self.resume(how.victim);
  for (int i = 0; i < 10; ++i) sum_again("right bytes while the stopped one goes on");
  if (how.kind != fault::killed) self.wait_for(how.victim, victim_done);
  for (auto* each : {&tensors.x, &tensors.y})
    expect_sum_of(ranks, *each, "the same bytes when the stopped one has gone on");
  sum_again("right bytes after the stopped one has gone on");
  self.post(done);
  for (auto each : ranks) self.wait_for(each.value(), done);
}

void survive(const fault_case& how, network_of_rank network, test_rank& self,
             const std::filesystem::path& folder) {
  folder_store place(folder);
  auto options = network(self.rank());
  options.report_timeout = timeout;
  ucx_group_resources resources("token", options);
  std::vector<world_rank> ranks(static_cast<std::size_t>(how.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto group = make_ucx_group({"before", ranks, self.rank()}, place, resources);
  member_tensors tensors{group->allocate({how.part * how.size}), group->allocate({how.part * how.size})};
  tensors.begin(*group, how.operation).wait();
  self.barrier(ready);
  group = make_ucx_group({"failing", ranks, self.rank()}, place, resources);
  std::thread striker;
  if (self.rank() == how.helper) striker = strike(how, self);
  if (self.rank() == how.victim && how.kind == fault::late) self.wait_for(how.helper, continues);
  auto error = error_of_calls(*group, tensors, how);
  if (striker.joinable()) striker.join();
  if (self.rank() == how.victim) return self.post(victim_done);
  expect(error.kind() ==
             (how.kind == fault::killed ? collective_failure::lost_member : collective_failure::timed_out),
         "the kind of the failure: " + std::string(error.what()));
  expect(error.ranks() == std::vector<world_rank>{how.victim},
         "the victim's rank: " + std::string(error.what()));
  expect(error.group() == "failing" && error.sequence() > 0, "group and sequence number");
  std::string_view told = error.what();
  expect(told.find(to_string(how.operation)) != told.npos && told.find("failing") != told.npos &&
             told.find("rank " + std::to_string(how.victim)) != told.npos,
         "operation, group and rank told");
  group.reset();
  live_on(how, self, place, resources, tensors);
}

/// Such calls spend most of their time accessing the tensors of other members.
fault_case stopped_in_large_sum(unsigned seed) {
  auto made = drawn(seed);
  made.size = 3;
  made.victim = static_cast<int>(seed % 3);
  made.helper = (made.victim + 1) % 3;
  made.kind = fault::stopped;
  made.operation = collective_kind::all_reduce;
  made.part = 3000000 / fewer_elements;
  return made;
}

void try_cases(const std::function<fault_case(unsigned)>& draw, unsigned first, unsigned end,
               network_of_rank network) {
  for (unsigned seed = first; seed < end; ++seed) {
    auto how = draw(seed);
    INFO("seed " << seed << ": " << how.size << " members, rank " << how.victim << ' '
                 << (how.kind == fault::killed    ? "killed"
                     : how.kind == fault::stopped ? "stopped"
                                                  : "late")
                 << " in " << to_string(how.operation) << " of " << how.part << " elements a member");
    temp_folder folder;
    std::string failure;
    try {
      spawn_ranks(
          how.size, [&](test_rank& self) { survive(how, network, self, folder.path()); },
          std::chrono::seconds(300));
    } catch (const std::exception& error) {
      failure = error.what();
    }
    CHECK(failure == "");
  }
}

}  // namespace

void troupe::testing::try_fault_cases(unsigned first, unsigned end, network_of_rank network) {
  try_cases(drawn, first, end, network);
}

void troupe::testing::try_large_sums_with_stopped_member(unsigned first, unsigned end,
                                                         network_of_rank network) {
  try_cases(stopped_in_large_sum, first, end, network);
}
