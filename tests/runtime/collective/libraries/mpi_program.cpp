// What the processes do that mpirun starts for the test: mpi_program FOLDER cases|mismatch|late|absent|"wrong
// ranks", with a folder that all share. Puts "well RANK" there if all is as promised.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "runtime/collective/cases/collective_case.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

std::unique_ptr<communicator> make_group(const std::string& name, const std::vector<world_rank>& ranks,
                                         store& place, mpi_group_resources& resources,
                                         const communicator_options& options = {}) {
  auto member = std::ranges::find(ranks, resources.rank()) - ranks.begin();
  return make_mpi_group({name, ranks, static_cast<int>(member)}, place, resources, options);
}

std::vector<world_rank> all_ranks(const mpi_group_resources& resources) {
  std::vector<world_rank> ranks(static_cast<std::size_t>(resources.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void run_cases(store& place, mpi_group_resources& resources) {
  auto all = make_group("all", all_ranks(resources), place, resources);
  members given{*all,
                [&](const std::string& name, const std::vector<world_rank>& ranks) {
                  return make_group(name, ranks, place, resources);
                },
                false};
  run_collective_cases(given);
}

void expect_mismatch(store& place, mpi_group_resources& resources) {
  auto all = make_group("all", all_ranks(resources), place, resources);
  try {
    all->all_reduce(tensor::zeros({resources.rank() == 1 ? 11 : 10})).wait();
  } catch (const collective_error& error) {
    expect(error.kind() == collective_failure::mismatch, error.what());
    expect(error.ranks().size() == 2 && error.ranks()[1] == (resources.rank() == 2 ? 2 : 1), error.what());
    return;
  }
  expect(false, "an error");
}

/// Rank 1 comes when the others have given up. Each process goes on until all are done, since mpirun kills
/// the others when one has ended without MPI_Finalize.
void expect_late(store& place, mpi_group_resources& resources) {
  auto all = make_group("all", all_ranks(resources), place, resources, {.timeout = std::chrono::seconds(2)});
  if (resources.rank() == 1) {
    for (int rank : {0, 2}) place.get("gave up " + std::to_string(rank), std::chrono::minutes(5)).value();
    return;
  }
  try {
    all->barrier().wait();
  } catch (const collective_error& error) {
    expect(error.kind() == collective_failure::timed_out, error.what());
    expect(error.ranks() == std::vector<world_rank>{1}, error.what());
    place.put("gave up " + to_string(resources.rank()), {});
    return;
  }
  expect(false, "an error");
}

/// Rank 1 does not come to make the group.
void expect_absent(store& place, mpi_group_resources& resources) {
  if (resources.rank() == 1) {
    place.get("gave up", std::chrono::minutes(5)).value();
    return;
  }
  try {
    make_group("all", all_ranks(resources), place, resources, {.timeout = std::chrono::seconds(1)});
  } catch (const collective_error& error) {
    expect(error.kind() == collective_failure::timed_out, error.what());
    expect(error.ranks() == std::vector<world_rank>{1}, error.what());
    place.put("gave up", {});
    return;
  }
  expect(false, "an error");
}

void expect_refusals(store& place, mpi_group_resources& resources) {
  for (const group_description& wrong :
       {group_description{"all", {0, 2}, 0}, {"all", {1, 0}, resources.rank().value()}}) {
    try {
      make_mpi_group(wrong, place, resources);
    } catch (const bad_input& refused) {
      expect(std::string(refused.what()).find("mpirun") != std::string::npos, refused.what());
      continue;
    }
    expect(false, "a refusal");
  }
}

void run(const std::string& what, store& place) {
  mpi_group_resources resources;
  auto rank = to_string(resources.rank());
  if (what == "cases") run_cases(place, resources);
  if (what == "mismatch") expect_mismatch(place, resources);
  if (what == "wrong ranks") expect_refusals(place, resources);
  if (what == "late") expect_late(place, resources);
  if (what == "absent") expect_absent(place, resources);
  place.put("well " + rank, {});
  if (what != "late") return;
  for (auto other : all_ranks(resources))
    place.get("well " + to_string(other), std::chrono::minutes(2)).value();
}

}  // namespace

int main(int, char** arguments) {
  try {
    folder_store place(arguments[1]);
    run(arguments[2], place);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
