#include "troupe/collective/libraries/mpi/mpi_group.hpp"

#include <exception>
#include <mutex>
#include <vector>

#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/libraries/mpi/mpi_backend.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/hash/fnv1a.hpp"

namespace troupe {
namespace {

// Tells apart two groups with the same ranks that are made at the same time, by their names.
int tag_of(const std::string& name) {
  return static_cast<int>(fnv1a_32().add(name).value() % 32767);  // the least upper bound that MPI promises
}

void require_ranks(const group_description& group, const mpi_group_resources& resources) {
  for (auto rank : group.ranks)
    if (rank < 0 || rank >= resources.size())
      throw bad_input("group " + group.name + " has rank " + to_string(rank) + ", but mpirun started " +
                      std::to_string(resources.size()) + " processes: start one for each rank");
  if (group.rank_of(group.member) != resources.rank())
    throw bad_input("member " + std::to_string(group.member) + " of group " + group.name + " is rank " +
                    to_string(group.rank_of(group.member)) + ", but this process is rank " +
                    to_string(resources.rank()) + " of mpirun");
}

class mpi_instance final : public backend_instance {
 public:
  explicit mpi_instance(const backend_options& options) {
    if (resources_.size() == options.world_size && resources_.rank() == options.rank) return;
    throw bad_input("--backend mpi: this is rank " + to_string(options.rank) + " of " +
                    std::to_string(options.world_size) + " in the job, but " + to_string(resources_.rank()) +
                    " of " + std::to_string(resources_.size()) +
                    " for MPI: start the program with `mpirun -n " + std::to_string(options.world_size) +
                    " PROGRAM` and without another launcher");
  }
  std::unique_ptr<communicator> make(const group_description& group, collective::store& keys,
                                     const communicator_options& options) override {
    return make_mpi_group(group, keys, resources_, options);
  }

 private:
  mpi_group_resources resources_;
};

}  // namespace

struct mpi_group_resources::kept_memory {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> blocks;
};

mpi_group_resources::mpi_group_resources() : kept_(std::make_unique<kept_memory>()) {
  int is_initialised = 0, threads = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised) {
    MPI_Query_thread(&threads);
  } else {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads);
    was_initialised_here_ = true;
  }
  if (threads < MPI_THREAD_MULTIPLE)
    throw bad_input(
        "MPI does not serve several threads here: initialise it with MPI_THREAD_MULTIPLE, or leave that to "
        "Troupe");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

mpi_group_resources::~mpi_group_resources() {
  if (!kept_->blocks.empty()) {
    static_cast<void>(kept_.release());  // MPI may write there until the process has ended
    // MPI_Finalize waits for all processes, and after a failure some may never call it. mpirun ends them once
    // it sees that this one has not. It must not see that in a job that ends in peace: Open MPI 4.1's own
    // mpirun then waits for ever now and then, in PMIx_server_finalize.
    if (std::uncaught_exceptions() > 0) return;
  }
  int is_finalised = 0;
  MPI_Finalized(&is_finalised);
  if (was_initialised_here_ && !is_finalised) MPI_Finalize();
}

void mpi_group_resources::keep(std::shared_ptr<void> memory) {
  std::lock_guard lock(kept_->mutex);
  kept_->blocks.push_back(std::move(memory));
}

std::unique_ptr<communicator> make_mpi_group(const group_description& group, collective::store& keys,
                                             mpi_group_resources& resources,
                                             const communicator_options& options) {
  require_ranks(group, resources);
  // MPI_Comm_create_group waits for members without end, and names none.
  collective::rendezvous(group, keys, options.timeout).all_gather("MPI", "begins");
  std::vector<int> ranks;
  for (auto rank : group.ranks) ranks.push_back(rank.value());
  MPI_Group world, members;
  MPI_Comm made = MPI_COMM_NULL;
  collective::check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world));
  collective::check_mpi(MPI_Group_incl(world, group.size(), ranks.data(), &members));
  int status = MPI_Comm_create_group(MPI_COMM_WORLD, members, tag_of(group.name), &made);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  collective::check_mpi(status);
  collective::check_mpi(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
  return std::make_unique<communicator>(
      group, std::make_unique<collective::mpi_backend>(group, keys, resources, made), options);
}

group_backend mpi_groups() {
  return {"mpi", [](const auto& options) { return std::make_unique<mpi_instance>(options); }};
}

}  // namespace troupe
