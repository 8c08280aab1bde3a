#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

const std::string mpirun = TROUPE_TEST_MPIRUN;  // empty where MPI was left out

run_options mpirun_with(int count, const std::string& what, const temp_folder& folder) {
  run_options options;
  options.command = {mpirun,
                     "--oversubscribe",
                     "--bind-to",
                     "none",
                     "-n",
                     std::to_string(count),
                     TROUPE_TEST_MPI_PROGRAM,
                     folder.path().string(),
                     what};
  options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                         {"OMPI_MCA_mpi_yield_when_idle", "1"}};
  options.deadline = std::chrono::minutes(4);
  return options;
}

/// Each of `count` processes has put "well RANK" into the folder, or does so within `timeout`.
void check_ranks(int count, const temp_folder& folder, std::chrono::milliseconds timeout = {}) {
  folder_store place(folder.path());
  for (int rank = 0; rank < count; ++rank)
    CHECK(place.get("well " + std::to_string(rank), timeout).has_value());
}

/// Has mpirun start `count` processes, and checks that all of them ended well.
void run_ranks(int count, const std::string& what) {
  if (mpirun.empty()) SKIP("Troupe was built without MPI");
  temp_folder folder;
  auto result = run_process(mpirun_with(count, what, folder));
  INFO(result.output << result.errors);
  check_ranks(count, folder);
  CHECK(result.exit_code == 0);
}

}  // namespace

TEST_CASE("an MPI group of one process conforms to the backend contract") { run_ranks(1, "cases"); }
TEST_CASE("an MPI group of 2 processes conforms to the backend contract") { run_ranks(2, "cases"); }
TEST_CASE("an MPI group of 3 processes conforms to the backend contract") { run_ranks(3, "cases"); }

TEST_CASE("over MPI a differing call is named on all members") { run_ranks(3, "mismatch"); }

TEST_CASE("over MPI a member that times out is named on all waiting members") {
  if (mpirun.empty()) SKIP("Troupe was built without MPI");
  temp_folder folder;
  // The processes cannot call MPI_Finalize after a time-out. Open MPI's mpirun then reports them, kills those
  // that still run, and sometimes never ends itself: it is killed here once all of them are done.
  background_process ranks(mpirun_with(3, "late", folder));
  check_ranks(3, folder, std::chrono::minutes(2));
}

TEST_CASE("over MPI a member that does not come to make a group is named") { run_ranks(2, "absent"); }

TEST_CASE("a group whose ranks are not those of mpirun is refused") { run_ranks(2, "wrong ranks"); }

TEST_CASE("a build without MPI names the package to install") {
  if (!mpirun.empty()) SKIP("Troupe was built with MPI");
  CHECK_THROWS_WITH(mpi_group_resources(), Catch::Matchers::ContainsSubstring("libopenmpi-dev"));
}
