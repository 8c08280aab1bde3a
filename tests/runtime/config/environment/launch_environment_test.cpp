#include "troupe/config/environment/launch_environment.hpp"

#include <stdlib.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <utility>

#include "troupe/config/environment/other_launchers.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::bad_input;

namespace {

using variables = std::map<std::string, std::string>;

troupe::environment_reader reader_of(variables values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<troupe::launch_environment> read(variables values) {
  return troupe::read_launch_environment(reader_of(std::move(values)));
}

}  // namespace

TEST_CASE("without a launcher's variables a process forms a world of one") {
  CHECK_FALSE(read({}));
  CHECK_FALSE(read({{"HOME", "/root"}, {"MASTER_ADDR", "10.0.0.1"}, {"RANK", ""}}));
}

TEST_CASE("RANK and WORLD_SIZE say who a process is") {
  auto who = read({{"RANK", "3"},
                   {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "1"},
                   {"MASTER_ADDR", "node7"},
                   {"MASTER_PORT", "4711"},
                   {"TROUPE_JOB_SECRET", "aabb"},
                   {"TROUPE_INCARNATION", "2"}});
  REQUIRE(who);
  CHECK(who->rank == 3);
  CHECK(who->world_size == 4);
  CHECK(who->local_rank == 1);
  CHECK(who->master_addr == "node7");
  CHECK(who->master_port == 4711);
  CHECK(who->secret_hex == "aabb");
  CHECK(who->incarnation == 2);
  CHECK(who->job_id == "node7:4711");
  CHECK_FALSE(who->launched_by_troupe);
  CHECK(who->source == "RANK/WORLD_SIZE");
}

TEST_CASE("without a launcher RANK and WORLD_SIZE are enough on one host") {
  auto who = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  REQUIRE(who);
  CHECK(who->local_rank == 1);
  CHECK(who->master_addr == "127.0.0.1");
  CHECK(who->master_port == 29500);
}

TEST_CASE("Open MPI and Slurm are understood, and RANK wins over both") {
  variables mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                {"OMPI_COMM_WORLD_SIZE", "4"},
                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                {"PMIX_NAMESPACE", "job-12"}};
  CHECK(read(mpi)->source == "Open MPI");
  CHECK(read(mpi)->rank == 1);
  CHECK(read(mpi)->job_id == "job-12");

  variables slurm{{"SLURM_PROCID", "2"},  {"SLURM_NTASKS", "16"}, {"SLURM_STEP_NUM_TASKS", "3"},
                  {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "88"}, {"SLURM_STEP_ID", "1"}};
  CHECK(read(slurm)->source == "Slurm");
  CHECK(read(slurm)->rank == 2);
  CHECK(read(slurm)->world_size == 3);  // of the step, in an allocation of 16
  CHECK(read(slurm)->local_rank == 0);
  CHECK(read(slurm)->job_id == "88.1");

  mpi.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  CHECK(read(mpi)->source == "RANK/WORLD_SIZE");
  CHECK(read(mpi)->world_size == 2);
}

TEST_CASE("what srun did not start in a Slurm allocation is no job step") {
  CHECK_FALSE(read({{"SLURM_NTASKS", "4"}}));
  variables batch_script{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  CHECK_FALSE(read(batch_script));
  batch_script["SLURM_STEP_NUM_TASKS"] = "1";
  for (const char* special : {"4294967291", "4294967290"}) {  // batch, interactive
    batch_script["SLURM_STEP_ID"] = special;
    CHECK_FALSE(read(batch_script));
  }
  batch_script["SLURM_STEP_ID"] = "0";
  CHECK(read(batch_script)->world_size == 1);
}

TEST_CASE("processes of launchers that are not understood, and batch scripts without srun, are warned") {
  auto warning = [](variables set) {
    return troupe::config::warning_of_other_launcher(reader_of(std::move(set)));
  };
  CHECK(warning({}) == "");
  CHECK(warning({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}) == "");
  CHECK_THAT(
      warning({{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}}),
      ContainsSubstring("MPICH or Intel MPI as one of several (PMI_RANK=3, PMI_SIZE=8, MPI_LOCALRANKID=1)") &&
          ContainsSubstring("RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=$MPI_LOCALRANKID exec PROGRAM"));
  // Flux, PALS and MVAPICH set MPICH's variables too.
  variables pmi{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
  auto with_pmi = [&](variables own) {
    return pmi.merge(own), std::exchange(pmi, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  };
  CHECK_THAT(warning(with_pmi({{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "2"}})),
             ContainsSubstring("by Flux"));
  CHECK_THAT(warning(with_pmi({{"PALS_RANKID", "0"}})),
             ContainsSubstring("by PALS") && ContainsSubstring("WORLD_SIZE=N"));
  CHECK_THAT(warning(with_pmi({{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "2"}})),
             ContainsSubstring("by MVAPICH"));
  CHECK_THAT(warning({{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "6"}}), ContainsSubstring("jsrun"));
  CHECK_THAT(warning({{"PMIX_RANK", "1"}}), ContainsSubstring("PMIX_RANK=1"));
  CHECK_THAT(warning({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), ContainsSubstring("srun PROGRAM"));
  CHECK(warning({{"SLURM_NTASKS", "1"}}) == "");
}

TEST_CASE("a launcher that is one of several is warned that each starts a job of its own") {
  auto warning = [](variables set) {
    return troupe::config::warning_of_several_launchers(reader_of(std::move(set)));
  };
  CHECK(warning({}) == "");
  CHECK(warning({{"RANK", "0"}, {"WORLD_SIZE", "1"}}) == "");
  variables step{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  CHECK(warning(step) == "");  // a batch script
  step["SLURM_STEP_ID"] = "0";
  CHECK_THAT(warning(step), ContainsSubstring("(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2)") &&
                                ContainsSubstring("to srun without `troupe launch`"));
  CHECK_THAT(warning({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
             ContainsSubstring("to mpirun without"));
  CHECK_THAT(warning({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("RANK=1, WORLD_SIZE=2"));
}

TEST_CASE("an incomplete set of variables is refused with the missing ones and what to set") {
  CHECK_THROWS_WITH(read({{"RANK", "0"}}), ContainsSubstring("RANK is set but WORLD_SIZE is not") &&
                                               ContainsSubstring("set both RANK and WORLD_SIZE"));
  CHECK_THROWS_WITH(read({{"WORLD_SIZE", "2"}}), ContainsSubstring("WORLD_SIZE is set but RANK is not"));
  CHECK_THROWS_WITH(read({{"LOCAL_RANK", "0"}}), ContainsSubstring("LOCAL_RANK is set but RANK is not"));
  CHECK_THROWS_WITH(read({{"OMPI_COMM_WORLD_SIZE", "2"}}), ContainsSubstring("OMPI_COMM_WORLD_RANK is not"));
  CHECK_THROWS_WITH(read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}),
                    ContainsSubstring("SLURM_STEP_NUM_TASKS is not"));
  CHECK_THROWS_AS(read({{"RANK", "0"}}), bad_input);
}

TEST_CASE("malformed numbers, or numbers out of range, are refused with the variable and its text") {
  CHECK_THROWS_WITH(read({{"RANK", "one"}, {"WORLD_SIZE", "2"}}),
                    ContainsSubstring("RANK") && ContainsSubstring("'one'"));
  CHECK_THROWS_WITH(read({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("from 0 to 1"));
  CHECK_THROWS_AS(read({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), bad_input);
  CHECK_THROWS_AS(read({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), bad_input);
  CHECK_THROWS_AS(read({{"RANK", "0"}, {"WORLD_SIZE", "2x"}}), bad_input);
  CHECK_THROWS_AS(read({{"RANK", "0"}, {"WORLD_SIZE", "99999999999999999999"}}), bad_input);
  CHECK_THROWS_WITH(read({{"RANK", "0"}, {"WORLD_SIZE", "2147483647"}}),
                    ContainsSubstring("WORLD_SIZE: expected a number from 1 to 65536, got '2147483647'"));
  CHECK_THROWS_WITH(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}),
                    ContainsSubstring("MASTER_PORT"));
  CHECK_THROWS_AS(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TROUPE_INCARNATION", "x"}}), bad_input);
}

TEST_CASE("a job on several hosts needs MASTER_ADDR") {
  variables slurm{
      {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NNODES", "2"}, {"SLURM_STEP_ID", "0"}};
  CHECK_THROWS_WITH(read(slurm), ContainsSubstring("MASTER_ADDR"));
  slurm["SLURM_STEP_NUM_NODES"] = "1";  // a step on one of two hosts
  CHECK(read(slurm)->master_addr == "127.0.0.1");
  slurm["SLURM_STEP_NUM_NODES"] = "2";
  CHECK_THROWS_WITH(read(slurm), ContainsSubstring("MASTER_ADDR"));
  variables mpi{
      {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  CHECK_THROWS_WITH(read(mpi), ContainsSubstring("MASTER_ADDR"));
  slurm["MASTER_ADDR"] = "node1";
  CHECK(read(slurm)->master_addr == "node1");
}

TEST_CASE("a process started by troupe launch is recognised") {
  variables set{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TROUPE_AGENT", "1"}, {"TROUPE_JOB_ID", "demo"}};
  CHECK(read(set)->launched_by_troupe);
  CHECK(read(set)->source == "troupe launch");
  CHECK(read(set)->job_id == "demo");
  CHECK_FALSE(read(set)->max_restarts);
  set["TROUPE_MAX_RESTARTS"] = "16";
  CHECK(read(set)->max_restarts == 16);
  CHECK(read(set)->stop_signals == "");
  set["TROUPE_STOP_SIGNALS"] = "USR1";
  CHECK(read(set)->stop_signals == "USR1");
  set["TROUPE_AGENT"] = "maybe";
  CHECK_THROWS_WITH(read(set), ContainsSubstring("TROUPE_AGENT"));
}

TEST_CASE("files of one user and boot are in the runtime folder, the temp folder or /tmp") {
  variables set{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  CHECK(read(set)->runtime_folders == std::vector<std::string>{"/tmp"});
  set["TMPDIR"] = "/scratch";
  CHECK(read(set)->runtime_folders == std::vector<std::string>{"/scratch", "/tmp"});
  set["XDG_RUNTIME_DIR"] = "/run/user/7";
  CHECK(read(set)->runtime_folders == std::vector<std::string>{"/run/user/7", "/scratch", "/tmp"});
}

TEST_CASE("the process environment is read by name") {
  auto reader = troupe::process_environment();
  ::setenv("TROUPE_CONFIG_TEST", "here", 1);
  CHECK(reader("TROUPE_CONFIG_TEST") == "here");
  ::unsetenv("TROUPE_CONFIG_TEST");
  CHECK_FALSE(reader("TROUPE_CONFIG_TEST"));
}
