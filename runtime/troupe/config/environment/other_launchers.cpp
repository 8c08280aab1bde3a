#include "troupe/config/environment/other_launchers.hpp"

#include <string_view>

namespace troupe::config {
namespace {

/// The variables in which a launcher gives a process its place. Null: it has none.
struct other_launcher {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* proof = nullptr;  ///< without it the others say nothing
};

/// Those that set variables of others beside their own come before these.
constexpr other_launcher others[] = {
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
    {"PALS", "PALS_RANKID", nullptr, "PALS_LOCAL_RANKID"},
    {"JSM (jsrun)", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"MVAPICH", "MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_LOCAL_RANK"},
    {"MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"a launcher with PMIx", "PMIX_RANK", nullptr, nullptr},
};

/// Those under which `troupe launch` would be several.
constexpr other_launcher launchers[] = {
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"what sets RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
};

std::string text_of(const environment_reader& read, const char* name) {
  return name ? read(name).value_or("") : "";
}

/// "PMI_RANK=3, PMI_SIZE=8"
std::string seen(const environment_reader& read, const other_launcher& launcher) {
  std::string text;
  for (const char* name : {launcher.rank, launcher.world_size, launcher.local_rank})
    if (auto value = text_of(read, name); !value.empty())
      text += (text.empty() ? "" : ", ") + std::string(name) + '=' + value;
  return text;
}

/// "RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=$MPI_LOCALRANKID"
std::string settings(const environment_reader& read, const other_launcher& launcher) {
  auto text = "RANK=$" + std::string(launcher.rank) +
              (launcher.world_size ? " WORLD_SIZE=$" + std::string(launcher.world_size) : " WORLD_SIZE=N");
  if (!text_of(read, launcher.local_rank).empty()) text += " LOCAL_RANK=$" + std::string(launcher.local_rank);
  return text;
}

std::string warning_of(const environment_reader& read, const other_launcher& launcher) {
  return "this process runs as a job of its own. Was it started by " + std::string(launcher.name) +
         " as one of several (" + seen(read, launcher) +
         ")? Its variables are not read: give each process RANK, WORLD_SIZE and LOCAL_RANK, for example as "
         "`sh -c '" +
         settings(read, launcher) +
         " exec PROGRAM'`, and MASTER_ADDR and TROUPE_JOB_SECRET if there are several hosts; or use "
         "`troupe launch`, srun, or mpirun of Open MPI";
}

std::string warning_of_slurm(const environment_reader& read) {
  auto tasks = text_of(read, "SLURM_NTASKS");
  if (tasks.empty() || tasks == "1" || !text_of(read, "SLURM_STEP_ID").empty()) return {};
  return "this process runs as a job of its own: Slurm's allocation has " + tasks +
         " tasks (SLURM_NTASKS), but srun did not start this program (SLURM_STEP_ID is not set). "
         "`srun PROGRAM` starts one process for each task, `troupe launch` those of one host";
}

}  // namespace

std::string warning_of_other_launcher(const environment_reader& read) {
  for (const auto& each : others) {
    if (text_of(read, each.rank).empty()) continue;
    if (text_of(read, each.world_size) == "1") return {};
    return warning_of(read, each);
  }
  return warning_of_slurm(read);
}

std::string warning_of_several_launchers(const environment_reader& read) {
  for (const auto& each : launchers) {
    auto size = text_of(read, each.world_size);
    if (text_of(read, each.rank).empty() || size.empty() || size == "1") continue;
    if (each.proof && text_of(read, each.proof).empty()) continue;
    return "this launcher is itself one of several processes (" + seen(read, each) +
           "): each of them starts a job of its own. Give the program to " + std::string(each.name) +
           " without `troupe launch`, or start one launcher";
  }
  return {};
}

}  // namespace troupe::config
