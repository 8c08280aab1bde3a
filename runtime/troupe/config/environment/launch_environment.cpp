#include "troupe/config/environment/launch_environment.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr int max_int = std::numeric_limits<int>::max();
/// Each process keeps a little of each other one.
constexpr int most_processes = 1 << 16;

/// The names one launcher uses for the same three things.
struct launcher {
  const char* source;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  /// The variable without which the others say nothing. Slurm sets SLURM_PROCID in batch scripts too, for
  /// programs that `srun` did not start. Null: none is needed.
  const char* proof;
};

constexpr launcher launchers[] = {
    {"RANK/WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};

std::optional<std::string> text_of(const environment_reader& read, const char* name) {
  auto value = read(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

/// None if `name` is not set.
template <class T>
std::optional<T> number_of(const environment_reader& read, const char* name, T least, T most) {
  auto text = text_of(read, name);
  if (!text) return std::nullopt;
  T value{};
  auto* end = text->data() + text->size();
  auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stop != end || value < least || value > most)
    throw bad_input(std::string("environment variable ") + name + ": expected a number from " +
                    std::to_string(least) + " to " + std::to_string(most) + ", got '" + *text + "'");
  return value;
}

[[noreturn]] void refuse_half(const char* present, const char* missing, const launcher& names) {
  throw bad_input(std::string(present) + " is set but " + missing + " is not: set both " + names.rank +
                  " and " + names.world_size +
                  " (and MASTER_ADDR and MASTER_PORT for a job on several hosts), or unset " + present +
                  " to run one process alone");
}

/// Slurm's numbers of the steps that are no `srun`: batch scripts, interactive shells and what else it counts
/// as one.
constexpr std::uint32_t first_special_step = 0xfffffff0;

bool has_proof(const environment_reader& read, const launcher& names) {
  if (!names.proof) return true;
  auto step = number_of<std::uint32_t>(read, names.proof, 0, std::numeric_limits<std::uint32_t>::max());
  return step && *step < first_special_step;
}

const launcher* find_launcher(const environment_reader& read) {
  for (const auto& candidate : launchers) {
    if (!has_proof(read, candidate)) continue;
    bool rank = text_of(read, candidate.rank).has_value();
    bool size = text_of(read, candidate.world_size).has_value();
    if (rank && !size) refuse_half(candidate.rank, candidate.world_size, candidate);
    if (!rank && size) refuse_half(candidate.world_size, candidate.rank, candidate);
    if (rank) return &candidate;
  }
  if (text_of(read, "LOCAL_RANK")) refuse_half("LOCAL_RANK", "RANK", launchers[0]);
  return nullptr;
}

/// Whether the launcher itself says that the job's processes lie on several hosts.
bool on_several_hosts(const environment_reader& read, const launcher& names, int world_size) {
  std::string_view source = names.source;
  if (source == "Open MPI")
    return number_of(read, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, max_int).value_or(world_size) < world_size;
  if (source == "Slurm") {
    auto num_hosts = number_of(read, "SLURM_STEP_NUM_NODES", 1, max_int);
    return num_hosts.value_or(number_of(read, "SLURM_NNODES", 1, max_int).value_or(1)) > 1;
  }
  return false;
}

std::string master_addr_of(const environment_reader& read, const launcher& names, int world_size) {
  if (auto given = text_of(read, "MASTER_ADDR")) return *given;
  if (on_several_hosts(read, names, world_size))
    throw bad_input(
        std::string(names.source) +
        " has started this job on several hosts, but MASTER_ADDR is not set: set it to the name or address "
        "of the host of rank 0");
  return launch_environment().master_addr;
}

std::string job_id_of(const environment_reader& read, const launch_environment& who) {
  for (const char* name : {"TROUPE_JOB_ID", "PMIX_NAMESPACE"})
    if (auto given = text_of(read, name)) return *given;
  if (auto job = text_of(read, "SLURM_JOB_ID"); job && who.source == "Slurm")
    return *job + "." + text_of(read, "SLURM_STEP_ID").value_or("0");
  return who.master_addr + ":" + std::to_string(who.master_port);
}

std::vector<std::string> runtime_folders_of(const environment_reader& read) {
  std::vector<std::string> folders;
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"})
    if (auto given = text_of(read, name)) folders.push_back(*given);
  for (const auto& always : launch_environment().runtime_folders)
    if (std::ranges::find(folders, always) == folders.end()) folders.push_back(always);
  return folders;
}

}  // namespace

std::optional<launch_environment> read_launch_environment(const environment_reader& read) {
  const auto* names = find_launcher(read);
  if (!names) return std::nullopt;
  launch_environment who;
  who.world_size = *number_of(read, names->world_size, 1, most_processes);
  who.rank = *number_of(read, names->rank, 0, who.world_size - 1);
  who.local_rank = number_of(read, names->local_rank, 0, who.world_size - 1).value_or(who.rank);
  who.master_addr = master_addr_of(read, *names, who.world_size);
  who.master_port = number_of<std::uint16_t>(read, "MASTER_PORT", 1, 65535).value_or(who.master_port);
  who.secret_hex = text_of(read, "TROUPE_JOB_SECRET").value_or("");
  who.incarnation = number_of<std::uint32_t>(read, "TROUPE_INCARNATION", 0, 1u << 31).value_or(0);
  who.launched_by_troupe = number_of(read, "TROUPE_AGENT", 0, 1).value_or(0) == 1;
  who.stop_signals = text_of(read, "TROUPE_STOP_SIGNALS").value_or("");
  who.max_restarts = number_of(read, "TROUPE_MAX_RESTARTS", 0, max_int);
  who.source = who.launched_by_troupe ? "troupe launch" : names->source;
  who.job_id = job_id_of(read, who);
  who.runtime_folders = runtime_folders_of(read);
  return who;
}

}  // namespace troupe
