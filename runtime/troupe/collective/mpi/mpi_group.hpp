#pragma once
#include <memory>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group_backend.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// MPI in this process, for all its groups: initialised with MPI_THREAD_MULTIPLE unless the program has done
/// so, and finalised at the end if it was initialised here. Outlives the groups. One in a process.
class mpi_group_resources {
 public:
  /// Throws bad_input if MPI does not serve several threads, or if Troupe was built without MPI.
  mpi_group_resources();
  /// After a group has failed, calls of MPI may be in flight that never end: MPI is not finalised then, and
  /// mpirun ends the job.
  ~mpi_group_resources();
  mpi_group_resources(const mpi_group_resources&) = delete;
  mpi_group_resources& operator=(const mpi_group_resources&) = delete;

  /// This process in MPI_COMM_WORLD: the ranks of groups are these.
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// A call that failed: the memory it may still touch is kept until the process ends.
  void keep(std::shared_ptr<void> memory);

 private:
  int rank_ = 0, size_ = 1;
  bool was_initialised_here_ = false;
  struct kept_memory;
  std::unique_ptr<kept_memory> kept_;
};

/// This process's end of a group of processes that mpirun started, which all call this with the same name and
/// ranks (those of MPI_COMM_WORLD); returns when all have. Calls are non-blocking ones of MPI (MPI_I...),
/// looked at by whoever waits. The name together with the ranks is used once in `rendezvous`, which outlives
/// the group. CPU memory; up to 2^31 - 1 elements a call.
///
/// Reductions: in MPI's order, which may depend on the number and placing of processes and on sizes: neither
/// the bits of the fixed tree, nor promised to be the same in another run. All dtypes; bf16 and f16, which
/// MPI does not know, are reduced as f32 copies and rounded once. Results pass through memory of the group,
/// since MPI cannot withdraw a call: one copy more than elsewhere.
///
/// Each call first exchanges what it is (one small all-gather), so that a mismatch is named. MPI promises
/// nothing to survivors: when a process dies, mpirun ends the others. A member that does not come is named
/// when the time-out has passed, by asking through the store for two seconds at most; a member that gives up
/// is noticed by the others when their own time-out passes. Making the group waits without a time-out.
///
/// Throws bad_input if the ranks are not those of MPI_COMM_WORLD, or if Troupe was built without MPI.
std::unique_ptr<communicator> make_mpi_group(const group_description& group, store& rendezvous,
                                             mpi_group_resources& resources,
                                             const communicator_options& options = {});

/// `--backend mpi` for a World whose processes mpirun started; it initialises MPI.
group_backend mpi_groups();

}  // namespace troupe
