#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/libraries/nccl_members.hpp"
#include "support/device_copies.hpp"
#include "support/fake_nccl/fake_nccl.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

/// A member that fails a case ends, and leaves others waiting in groups that it has not made yet.
const communicator_options options{.timeout = std::chrono::seconds(100), .decorate = [](auto below) {
                                     return std::make_unique<device_copies>(std::move(below));
                                   }};

void run_member(communicator& all, store& place) {
  auto on = make_nccl_connections(gpu_of_member(all.rank()));
  members given{all,
                [&](const std::string& name, const std::vector<world_rank>& ranks) {
                  auto member = std::ranges::find(ranks, all.group().rank_of(all.rank())) - ranks.begin();
                  return make_nccl_group({name, ranks, static_cast<int>(member)}, place, on, options);
                },
                false};
  run_collective_cases(given);
}

void run_cases(int size) {
  CHECK(run_nccl_members(size, run_member, options) ==
        std::vector<std::string>(static_cast<std::size_t>(size)));
  check_nccl_is_unharmed();
}

}  // namespace

TEST_CASE("a group of one member over NCCL conforms to the backend contract") { run_cases(1); }
TEST_CASE("a group of 2 members over NCCL conforms to the backend contract") { run_cases(2); }
TEST_CASE("a group of 3 members over NCCL conforms to the backend contract", "[many]") { run_cases(3); }
TEST_CASE(
    "groups over NCCL conform to the backend contract if all NCCL functions return ncclInProgress first",
    "[many]") {
  fake_nccl::set_num_in_progress(3);
  run_cases(2);
}
