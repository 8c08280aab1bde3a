#include "troupe/collective/group/group_builder.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>
#include <set>
#include <thread>

#include "troupe/collective/backends/backend_registry.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using ranks = std::vector<world_rank>;

/// What the processes of a job share: a store, and the ends of groups that meet in it.
struct shared_job {
  memory_store keys;
  std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<communicator>>> groups;
  std::multiset<std::string> begun;

  /// A backend that needs all members to start: each puts a key and waits for those of the others.
  std::unique_ptr<communicator> make(const group_description& group, store& by,
                                     const communicator_options& options) {
    by.put(group.name + '/' + std::to_string(group.member), {});
    for (int i = 0; i < group.size(); ++i)
      if (!by.get(group.name + '/' + std::to_string(i), options.timeout))
        throw std::runtime_error("member " + std::to_string(i) + " did not come");
    std::lock_guard lock(mutex);
    begun.insert(group.name);
    auto& ends = groups[group.name];
    if (ends.empty()) ends = make_local_group(group.ranks, options, group.name);
    return std::move(ends[static_cast<std::size_t>(group.member)]);
  }
};

/// One process: what it knows of the others, and its groups.
struct process {
  process(shared_job& of, int number, int world_size)
      : rank(number),
        members(world_size),
        groups(rank, members, of.keys,
               [&of](const group_description& group, store& keys, const communicator_options& options) {
                 return of.make(group, keys, options);
               }) {}

  std::shared_ptr<communicator> build(const ranks& of, const communicator_options& options = {}) {
    return groups.build(group_builder::name_of(of), of, options);
  }

  int rank;
  process_table members;
  group_builder groups;
};

struct job {
  explicit job(int world_size) {
    for (int i = 0; i < world_size; ++i) {
      all.push_back(std::make_unique<process>(shared, i, world_size));
      all.back()->members.on_view(1, std::vector<std::uint32_t>(static_cast<std::size_t>(world_size)));
    }
  }
  /// The body on a thread for each of the ranks.
  template <class Body>
  void on(const ranks& which, Body body) {
    std::vector<std::future<void>> running;
    for (auto rank : which)
      running.push_back(
          std::async(std::launch::async, [&, rank] { body(*all[static_cast<std::size_t>(rank)]); }));
    for (auto& each : running) each.get();
  }
  shared_job shared;
  std::vector<std::unique_ptr<process>> all;
};

/// For threads, where Catch2's checks do not work: what it throws comes out of job::on.
void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

float sum_of_ranks(communicator& group, int rank) {
  auto x = tensor::full({3}, static_cast<float>(rank));
  group.all_reduce(x).wait();
  return x.values<float>()[1];
}

}  // namespace

TEST_CASE("only the members of a group form it, in their order, and groups may overlap") {
  job of(5);
  of.on({0, 2, 4}, [](process& self) {
    auto group = self.build({4, 0, 2});
    expect(group->rank() == (self.rank == 4 ? 0 : self.rank == 0 ? 1 : 2), "the order of the list");
    expect(group->group().name == "{4,0,2}", "a name of the ranks");
    expect(sum_of_ranks(*group, self.rank) == 6, "the sum of three");
    if (self.rank != 0) expect(sum_of_ranks(*self.build({2, 4}), self.rank) == 6, "the sum of two");
    expect(sum_of_ranks(*group, 1) == 3, "the first group to go on");
  });
}

TEST_CASE("groups of the same ranks are told apart by their number") {
  job of(2);
  of.on({0, 1}, [](process& self) {
    auto first = self.build({0, 1}), second = self.build({0, 1});
    expect(first->group().name == "{0,1}", "the first name");
    expect(second->group().name == "{0,1}#2", "the second name");
    expect(sum_of_ranks(*second, self.rank) == 1, "the second group's sum");
    expect(sum_of_ranks(*first, self.rank) == 1, "the first group's sum");
  });
}

TEST_CASE("a fence ends all groups, with the lost rank, whoever their members are, and new ones work") {
  job of(3);
  std::vector<std::shared_ptr<communicator>> all(3), survivors(3);
  of.on({0, 1, 2}, [&](process& self) { all[static_cast<std::size_t>(self.rank)] = self.build({0, 1, 2}); });
  of.on({0, 2}, [&](process& self) {
    auto i = static_cast<std::size_t>(self.rank);
    survivors[i] = self.build({0, 2});
    expect(sum_of_ranks(*survivors[i], self.rank) == 2, "a sum without the member that is lost then");
  });
  of.on({0, 2}, [&](process& self) {
    auto i = static_cast<std::size_t>(self.rank);
    auto waiting = all[i]->barrier();
    self.members.on_fence(2, {{1, "killed by SIGKILL"}}, "rank 1 was lost: killed by SIGKILL");
    for (auto& group : {all[i], survivors[i]}) {
      try {
        (group == all[i] ? waiting : group->barrier()).wait();
        expect(false, "no barrier after the fence");
      } catch (const collective_error& error) {
        expect(error.kind() == collective_failure::lost_member && error.ranks() == ranks{1}, "the lost rank");
        expect(std::string(error.what()).find("killed by SIGKILL") != std::string::npos, "the cause");
      }
    }
    auto next = self.build({0, 2});
    expect(next->group().name == "2/{0,2}", "a name with the generation");
    expect(sum_of_ranks(*next, self.rank) == 2, "a new one to work");
  });
}

TEST_CASE("a fence without a lost process ends groups too") {
  job of(2);
  of.on({0, 1}, [&](process& self) {
    auto group = self.build({0, 1});
    self.members.on_fence(2, {}, "a stage of rank 0 failed");
    try {
      group->barrier().wait();
      expect(false, "no barrier after the fence");
    } catch (const collective_error& error) {
      expect(error.kind() == collective_failure::cancelled && error.ranks().empty(), "no rank");
      expect(std::string(error.what()).find("a stage of rank 0 failed") != std::string::npos, "the cause");
    }
    expect(sum_of_ranks(*self.build({0, 1}), self.rank) == 1, "a new one to work");
  });
}

TEST_CASE("a group of the next generation that was formed before its fence ends the old ones goes on") {
  job of(2);
  of.on({0, 1}, [](process& self) {
    auto old = self.build({0, 1});
    self.members.on_view(2, {0, 0});
    auto next = self.build({0, 1});
    self.members.on_fence(2, {}, "a stage failed");
    expect(old->failure() != nullptr, "the old group to end");
    expect(sum_of_ranks(*next, self.rank) == 1, "the new group to work");
  });
}

TEST_CASE("a group that is being formed at a fence ends, although none of its members is lost") {
  job of(3);
  auto waiting = std::async(std::launch::async, [&] { return of.all[0]->build({0, 2}); });
  while (!of.shared.keys.get("{0,2}/0", 1s)) continue;
  of.all[0]->members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  CHECK_THROWS_MATCHES(waiting.get(), collective_error,
                       MessageMatches(ContainsSubstring("group {0,2} ends with its generation")));
}

TEST_CASE("a job's groups are built beside those of the program, and named by their generation alone") {
  job of(2);
  auto waiting = std::async(std::launch::async, [&] { return of.all[0]->build({0, 1}); });
  while (!of.shared.keys.get("{0,1}/0", 1s)) continue;  // the program of rank 0 waits for rank 1
  std::vector<std::shared_ptr<communicator>> built(2);
  auto build = [&built](process& self, std::uint64_t generation) {
    auto& group = built[static_cast<std::size_t>(self.rank)];
    group = self.groups.build_in(generation, "stage 3", {0, 1}, {}, nullptr);
    expect(sum_of_ranks(*group, self.rank) == 1, "the sum");
  };
  of.on({0, 1}, [&](process& self) { build(self, 1); });
  CHECK(built[0]->group().name == "stage 3");
  for (auto& self : of.all) self->members.on_fence(2, {}, "a stage failed");
  CHECK((built[0]->failure() && built[1]->failure()));
  for (auto& self : of.all) self->members.on_view(2, {0, 0});
  of.on({0, 1}, [&](process& self) { build(self, 2); });
  CHECK(built[1]->group().name == "2/stage 3");
  CHECK_THROWS_AS(waiting.get(), collective_error);
}

TEST_CASE("a job's group is refused at once if its generation has ended or a member is lost") {
  job of(2);
  auto& self = *of.all[0];
  self.members.suspect(1, 0);
  CHECK_THROWS_MATCHES(self.groups.build_in(1, "stage 0", {0, 1}, {}, nullptr), collective_error,
                       MessageMatches(ContainsSubstring("a member was lost")));
  self.members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  CHECK_THROWS_MATCHES(self.groups.build_in(1, "stage 0", {0, 1}, {}, nullptr), collective_error,
                       MessageMatches(ContainsSubstring("rank 1 was killed")));
}

TEST_CASE("a job's group that nobody wants any more stops waiting for its members") {
  job of(2);
  std::atomic<bool> is_wanted = true;
  auto waiting = std::async(std::launch::async, [&] {
    return of.all[0]->groups.build_in(1, "stage 0", {0, 1}, {}, [&] {
      if (!is_wanted) throw std::runtime_error("the job has ended");
    });
  });
  while (!of.shared.keys.get("stage 0/0", 1s)) continue;
  is_wanted = false;
  CHECK_THROWS_MATCHES(waiting.get(), std::runtime_error,
                       MessageMatches(ContainsSubstring("the job has ended")));
}

TEST_CASE("after a loss that a group has noticed, the next group belongs to the generation after the fence") {
  job of(3);
  std::vector<std::shared_ptr<communicator>> all(3);
  of.on({0, 1, 2}, [&](process& self) { all[static_cast<std::size_t>(self.rank)] = self.build({0, 1, 2}); });
  for (int rank : {0, 2})
    all[static_cast<std::size_t>(rank)]->abort(
        collective_error(collective_failure::lost_member, "{0,1,2}", 1, {1}, "its socket closed"));
  auto early = std::async(std::launch::async, [&] { return of.all[0]->build({0, 2}); });
  of.all[2]->members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  auto late = std::async(std::launch::async, [&] { return of.all[2]->build({0, 2}); });
  while (!of.shared.keys.get("2/{0,2}/1", 1s)) continue;
  of.all[0]->members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  auto here = early.get(), there = late.get();
  CHECK((here->group().name == "2/{0,2}" && there->group().name == "2/{0,2}"));
  CHECK((!here->failure() && !there->failure()));
}

TEST_CASE("after a call that a stopped member does not make, the next group waits for the fence") {
  job of(2);
  std::vector<std::shared_ptr<communicator>> group(2);
  of.on({0, 1}, [&](process& self) { group[static_cast<std::size_t>(self.rank)] = self.build({0, 1}); });
  CHECK_THROWS_AS(group[0]->barrier({.timeout = 10ms}).wait(), collective_error);
  auto next = std::async(std::launch::async, [&] { return of.all[0]->build({0, 1}); });
  CHECK_FALSE(of.shared.keys.get("{0,1}#2/0", 100ms));  // it begins none that the fence would end
  of.all[1] = std::make_unique<process>(of.shared, 1, 2);
  for (auto& each : of.all) {
    each->members.on_fence(2, {{1, "no heartbeat for 1.0 s"}}, "no heartbeat for 1.0 s");
    each->members.on_view(2, {0, 1});
  }
  auto other = of.all[1]->build({0, 1});
  CHECK(next.get()->group().name == "2/{0,1}");
  CHECK(other->group().name == "2/{0,1}");
  CHECK(of.shared.begun.count("{0,1}") == 2);  // of the first generation only the first group
}

TEST_CASE(
    "a lost rank's replacement forms groups with the survivors, whatever groups and keys were made before") {
  job of(3);
  of.on({0, 1, 2}, [](process& self) {
    self.build({0, 1, 2});
    self.build({0, 1, 2});
  });
  of.all[1] = std::make_unique<process>(of.shared, 1, 3);
  of.all[1]->members.on_view(2, {0, 1, 0});
  of.on({0, 1, 2}, [](process& self) {
    if (self.rank != 1) {
      self.members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
      self.members.on_view(2, {0, 1, 0});
    }
    auto group = self.build({0, 1, 2});
    expect(group->group().name == "2/{0,1,2}", "a name with the generation");
    expect(sum_of_ranks(*group, self.rank) == 3, "the sum of all");
  });
}

TEST_CASE("a wait for a member ends with an error when the member is lost") {
  job of(2);
  auto waiting = std::async(std::launch::async, [&] { return of.all[0]->build({0, 1}); });
  while (!of.shared.keys.get("{0,1}/0", 1s)) continue;
  of.all[0]->members.on_fence(2, {{1, "exit code 3"}}, "exit code 3");
  try {
    waiting.get();
    FAIL("a group without its member");
  } catch (const collective_error& error) {
    CHECK(error.kind() == collective_failure::lost_member);
    CHECK(error.ranks() == ranks{1});
  }
  // The next one waits for the successor.
  auto next = std::async(std::launch::async, [&] { return of.all[0]->build({0, 1}); });
  of.all[1] = std::make_unique<process>(of.shared, 1, 2);
  for (auto& each : of.all) each->members.on_view(2, {0, 1});
  auto other = of.all[1]->build({0, 1});
  CHECK(next.get()->group().name == other->group().name);
}

TEST_CASE("a loss that a group detects counts before the membership knows of it") {
  job of(2);
  std::vector<std::shared_ptr<communicator>> group(2);
  of.on({0, 1}, [&](process& self) { group[static_cast<std::size_t>(self.rank)] = self.build({0, 1}); });
  group[0]->abort(collective_error(collective_failure::lost_member, "{0,1}", 1, {1}, "its socket closed"));
  communicator_options hurried;
  hurried.timeout = 1ms;
  try {
    of.all[0]->build({0, 1}, hurried);
    FAIL("a group without its member");
  } catch (const collective_error& error) {
    CHECK(error.kind() == collective_failure::timed_out);
    CHECK(error.ranks() == ranks{1});
    CHECK_THAT(error.what(), ContainsSubstring("no process of rank 1 is in the job"));
  }
}

TEST_CASE("a member whose connection has ended without a loss is in later groups") {
  job of(2);
  std::vector<std::shared_ptr<communicator>> group(2);
  of.on({0, 1}, [&](process& self) { group[static_cast<std::size_t>(self.rank)] = self.build({0, 1}); });
  group[0]->abort(collective_error(collective_failure::lost_member, "{0,1}", 1, {1}, "its connection ended"));
  of.on({0, 1}, [](process& self) {  // rank 0 waits in vain for a fence
    expect(sum_of_ranks(*self.build({0, 1}), self.rank) == 1, "the sum of both");
  });
}

TEST_CASE("the end of the job ends its groups and the formation of groups") {
  job of(2);
  std::vector<std::shared_ptr<communicator>> group(2);
  of.on({0, 1}, [&](process& self) { group[static_cast<std::size_t>(self.rank)] = self.build({0, 1}); });
  auto in_flight = group[0]->barrier();
  auto waiting = std::async(std::launch::async, [&] { return of.all[0]->build({0, 1}); });
  of.all[0]->members.on_end("rank 1 cannot be started again");
  CHECK_THROWS_MATCHES(in_flight.wait(), collective_error,
                       MessageMatches(ContainsSubstring("rank 1 cannot be started again")));
  CHECK_THROWS_AS(waiting.get(), job_failed);
}

TEST_CASE("groups of many ranks have short names that differ") {
  ranks many(500), others(500);
  for (int i = 0; i < 500; ++i) {
    many[static_cast<std::size_t>(i)] = i;
    others[static_cast<std::size_t>(i)] = i == 250 ? 999 : i;
  }
  CHECK(group_builder::name_of(many).size() < 64);
  CHECK(group_builder::name_of(many) != group_builder::name_of(others));
}

TEST_CASE("a group of one needs no backend, and threads carry no larger one between processes") {
  memory_store keys;
  backend_registry local("local", {}, {.world_size = 2});
  auto alone = local.make({"{7}", {7}, 0}, keys, {});
  CHECK(alone->group().ranks == ranks{7});
  CHECK(sum_of_ranks(*alone, 5) == 5);
  CHECK_THROWS_MATCHES(local.make({"{0,1}", {0, 1}, 0}, keys, {}), bad_input,
                       MessageMatches(ContainsSubstring("use --backend ucx")));
}

TEST_CASE("a backend that the program does not link is refused with what to link") {
  CHECK_THROWS_MATCHES(backend_registry("gloo", {}, {}), bad_input,
                       MessageMatches(ContainsSubstring("link troupe::collective_gloo") &&
                                      ContainsSubstring("gloo_groups()")));
}

namespace {

/// Makes groups of threads, and counts how often it begins and makes.
struct counted_backend {
  int begun = 0, made = 0;
  struct counted_instance final : backend_instance {
    explicit counted_instance(counted_backend& its) : of(its) {}
    std::unique_ptr<communicator> make(const group_description& group, store&,
                                       const communicator_options& options) override {
      ++of.made;
      return std::move(make_local_group(group.ranks, options, group.name).front());
    }
    counted_backend& of;
  };
  group_backend linked(bool makes_groups_of_one) {
    return {"counted",
            [this](const backend_options& options) {
              begun += options.world_size;
              return std::make_unique<counted_instance>(*this);
            },
            makes_groups_of_one};
  }
};

}  // namespace

TEST_CASE("a linked backend starts in a job of several processes and makes their groups") {
  memory_store keys;
  counted_backend backend;
  backend_registry backends("counted", {backend.linked(false)}, {.world_size = 3});
  CHECK(backend.begun == 3);
  backends.make({"{0}", {0}, 0}, keys, {});
  CHECK(backend.made == 0);
  backends.make({"{0,1}", {0, 1}, 0}, keys, {});
  CHECK(backend.made == 1);
  backend_registry("counted", {backend.linked(false)}, {.world_size = 1}).make({"{0}", {0}, 0}, keys, {});
  CHECK((backend.begun == 3 && backend.made == 1));
  backend_registry("counted", {backend.linked(true)}, {.world_size = 1}).make({"{0}", {0}, 0}, keys, {});
  CHECK((backend.begun == 4 && backend.made == 2));
}
