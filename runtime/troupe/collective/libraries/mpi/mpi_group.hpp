#pragma once
#include <memory>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/group_backend.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe {

/// MPI in this process, shared by all groups. Initialises MPI with MPI_THREAD_MULTIPLE unless the program has
/// done so, and finalises it if it was initialised here. Outlives the groups. At most one in a process.
class mpi_group_resources {
 public:
  /// Throws bad_input if MPI does not support MPI_THREAD_MULTIPLE, or if Troupe was built without MPI.
  mpi_group_resources();
  /// After a group has failed, MPI calls that never end may be in flight. Then MPI is not finalised, and
  /// mpirun ends the job.
  ~mpi_group_resources();
  mpi_group_resources(const mpi_group_resources&) = delete;
  mpi_group_resources& operator=(const mpi_group_resources&) = delete;

  /// This process in MPI_COMM_WORLD: the ranks of groups are these.
  world_rank rank() const { return rank_; }
  int size() const { return size_; }

  /// Keeps the memory of a failed call, which MPI may still access, until the process ends.
  void keep(std::shared_ptr<void> memory);

 private:
  int rank_ = 0, size_ = 1;
  bool was_initialised_here_ = false;
  struct kept_memory;
  std::unique_ptr<kept_memory> kept_;
};

/// Makes this process's communicator of a group of processes that mpirun has started. All members call it
/// with the same name and ranks (those of MPI_COMM_WORLD), and it returns when all have. Calls use
/// non-blocking MPI calls (MPI_I...), which the polling thread tests. The name together with the ranks is
/// used once in `keys`, which outlives the group. CPU memory; up to 2^31 - 1 elements a call.
///
/// Reductions use MPI's order, which may depend on the number and placement of processes and on sizes. The
/// result differs from the fixed tree's, and may differ in another run. All dtypes; bf16 and f16 are reduced
/// as f32 copies and rounded once. Results pass through memory of the group, since MPI cannot cancel a call:
/// one copy more than with other backends.
///
/// Each call first exchanges its signature (one small all-gather), so that a mismatch is named. Failures:
/// when a process dies, mpirun ends the others. A missing member is named after the time-out, from failure
/// reports in the store, for which the others are waited for two seconds at most. That a member has aborted
/// is noticed by the time-outs of the others. Making the group blocks without a time-out.
///
/// Throws bad_input if the ranks are not those of MPI_COMM_WORLD, or if Troupe was built without MPI.
std::unique_ptr<communicator> make_mpi_group(const group_description& group, collective::store& keys,
                                             mpi_group_resources& resources,
                                             const communicator_options& options = {});

/// `--backend mpi` for a World whose processes mpirun has started. It initialises MPI.
group_backend mpi_groups();

}  // namespace troupe
