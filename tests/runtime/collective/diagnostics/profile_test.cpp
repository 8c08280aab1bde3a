#include "troupe/collective/diagnostics/profile.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>

#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

const profile_key all_reduces{"default", collective_kind::all_reduce, "direct"};

}  // namespace

TEST_CASE("bus bandwidth is computed as in nccl-tests") {
  CHECK(bus_factor(collective_kind::all_reduce, 4) == 1.5);
  CHECK(bus_factor(collective_kind::reduce_scatter, 4) == 0.75);
  CHECK(bus_factor(collective_kind::all_gather, 8) == 0.875);
  CHECK(bus_factor(collective_kind::all_to_all, 2) == 0.5);
  CHECK(bus_factor(collective_kind::gather, 5) == 0.8);
  CHECK(bus_factor(collective_kind::scatter, 5) == 0.8);
  CHECK(bus_factor(collective_kind::broadcast, 7) == 1);
  CHECK(bus_factor(collective_kind::reduce, 7) == 1);
  CHECK(bus_factor(collective_kind::send, 2) == 1);
  CHECK(bus_factor(collective_kind::barrier, 4) == 0);
  CHECK(bus_factor(collective_kind::all_reduce, 1) == 0);
}

TEST_CASE("the profile sums calls into counts, means and bandwidths") {
  communication_profile profile;
  profile.add_call(all_reduces, 4, 1'000'000, 1ms);
  profile.add_call(all_reduces, 4, 2'000'000, 2ms);
  auto line = profile.lines().at(all_reduces);
  CHECK(line.count == 2);
  CHECK(line.bytes == 3'000'000);
  CHECK(line.mean_s() == Approx(1.5e-3));
  CHECK(line.algorithm_bandwidth() == Approx(1e9));
  CHECK(line.bus_bandwidth(collective_kind::all_reduce) == Approx(1.5e9));
}

TEST_CASE("time that no thread waited for counts as overlapped, time that a thread waited for as exposed") {
  communication_profile profile;
  profile.add_call(all_reduces, 2, 8, 10ms);
  CHECK(profile.lines().at(all_reduces).overlap() == 1);
  CHECK(profile.lines().at(all_reduces).exposed_s == 0);
  profile.add_wait(all_reduces, 5ms, 4ms);  // 1 ms behind another call
  CHECK(profile.lines().at(all_reduces).overlap() == Approx(0.6));
  CHECK(profile.lines().at(all_reduces).exposed_s == Approx(5e-3));
  profile.add_wait(all_reduces, 20ms, 20ms);  // a second thread
  CHECK(profile.lines().at(all_reduces).overlap() == 0);
}

TEST_CASE("a profile line without time or bytes causes no division by zero") {
  profile_line none;
  CHECK(none.mean_s() == 0);
  CHECK(none.algorithm_bandwidth() == 0);
  CHECK(none.bus_bandwidth(collective_kind::all_reduce) == 0);
  CHECK(none.overlap() == 0);
}

TEST_CASE("the profile is a table for people and an object for programs") {
  communication_profile profile;
  CHECK(profile.text("rank 0").empty());
  profile.add_call(all_reduces, 4, 1'000'000, 1ms);
  profile.add_call({"{0,2} \"odd\"", collective_kind::barrier, "direct"}, 2, 0, 1ms);
  auto text = profile.text("rank 0");
  CHECK_THAT(text, ContainsSubstring("rank 0\ngroup"));
  CHECK_THAT(text,
             ContainsSubstring("default     all_reduce     direct      4       1      1000000    1000.0"));
  CHECK_THAT(text, ContainsSubstring("{0,2} \"odd\" barrier"));
  auto json = profile.json(3);
  CHECK_THAT(json, ContainsSubstring(R"({"event":"communication","rank":3,"lines":[{"group":"default",)"));
  CHECK_THAT(json, ContainsSubstring(R"("calls":1,"bytes":1000000,"mean_s":0.001,)"
                                     R"("algorithm_bytes_per_s":1e+09,"bus_bytes_per_s":1.5e+09)"));
  CHECK_THAT(json, ContainsSubstring(R"("group":"{0,2} \"odd\"")"));
}

TEST_CASE("a group's profile covers its calls except for failed ones") {
  communicator_options options;
  options.profile = std::make_shared<communication_profile>();
  auto members = make_local_group(2, options, "pair");
  auto use = [](communicator& group) {
    auto x = tensor::zeros({1000});
    for (int i = 0; i < 3; ++i) group.all_reduce(x).wait();
    group.barrier().wait();
  };
  std::thread other([&] { use(*members[1]); });
  use(*members[0]);
  other.join();
  members[0]->abort("enough");
  CHECK_THROWS_AS(members[0]->barrier().wait(), collective_error);
  auto lines = options.profile->lines();
  REQUIRE(lines.size() == 2);
  const auto& sums = lines.at({"pair", collective_kind::all_reduce, "local"});
  CHECK(sums.count == 6);
  CHECK(sums.bytes == 24000);
  CHECK(sums.num_members == 2);
  CHECK(sums.active_s > 0);
  CHECK(lines.at({"pair", collective_kind::barrier, "local"}).count == 2);
}
