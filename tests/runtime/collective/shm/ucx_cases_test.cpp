#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

void run_cases(int size, group_path path = group_path::nearest) {
  temp_folder folder;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", {.path = path});
    auto make_group = [&](const std::string& name, const std::vector<world_rank>& ranks) {
      auto member = std::ranges::find(ranks, self.rank()) - ranks.begin();
      return make_ucx_group({name, ranks, static_cast<int>(member)}, place, resources);
    };
    auto all = make_group("all", world_group(self).ranks);
    members given{*all, make_group, true};
    run_collective_cases(given);
    self.barrier(1000);
  };
  spawn_ranks(size, body, std::chrono::seconds(500));
}

}  // namespace

TEST_CASE("groups of 1 and 2 processes of a host conform to the backend contract", "[many]") {
  run_cases(1);
  run_cases(2);
}
TEST_CASE("a group of 3 processes of a host conforms to the backend contract", "[many]") { run_cases(3); }
TEST_CASE("a group of 5 processes of a host conforms to the backend contract", "[many]") { run_cases(5); }
TEST_CASE("a group of 8 processes of a host conforms to the backend contract", "[.soak]") { run_cases(8); }
TEST_CASE("a group of 2 processes that exchange messages conforms to the backend contract", "[many]") {
  run_cases(2, group_path::network);
}
TEST_CASE("a group of 3 processes that exchange messages conforms to the backend contract") {
  run_cases(3, group_path::network);
}
TEST_CASE("a group of 5 processes that exchange messages conforms to the backend contract", "[.soak]") {
  run_cases(5, group_path::network);
}
