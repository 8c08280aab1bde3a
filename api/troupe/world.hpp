#pragma once
#include <csignal>
#include <memory>

#include "troupe/collective/group_backend.hpp"
#include "troupe/config/job_options.hpp"
#include "troupe/process_group.hpp"
#include "troupe/process_mesh.hpp"

namespace troupe {

class node;

/// The processes of a job, seen from one of them. Movable; one thread uses it. When the last handle goes (a
/// Trainer holds one too) the runtime shuts down, and another World may begin.
class World {
 public:
  /// Joins the job that the environment tells of (`troupe launch`, `mpirun`, `srun`, or RANK, WORLD_SIZE,
  /// MASTER_ADDR and MASTER_PORT by hand); without any of these, a job of this one process. `options.devices`
  /// devices in each process. Returns when this process is connected; the others may still be starting.
  /// `linked`: what `options.backend` may name beside ucx and local, such as gloo_groups() of
  /// troupe::collective_gloo, or every_backend(). Throws bad_input (half an environment, wrong secret, port
  /// in use, a backend that is not there, ...) with what to do.
  static World init(const job_options& options = {}, const std::vector<group_backend>& linked = {});

  /// A job of this one process with `devices` devices, whatever the environment says: no launcher, ports or
  /// files.
  static World local(int devices, job_options options = {}, const std::vector<group_backend>& linked = {});

  int rank() const;
  int world_size() const;
  int local_rank() const;
  /// Devices in all processes together.
  int num_devices() const;
  const job_options& options() const;
  /// Returns when every process has called it. Throws job_failed.
  void barrier();

  /// Asks the whole job to stop: what is done is saved in the snapshot folder, if there is one, at the end of
  /// a step, and then the calls of all processes throw job_stopped. `signal` is what run_program's exit code
  /// says (128 + signal). Returns at once. Any thread. run_program does this at SIGTERM, SIGINT and SIGHUP;
  /// a program with signals of its own calls it where it likes.
  void request_stop(int signal = SIGTERM);

  /// All processes. Formed by all together when it is first asked for, and anew when it has failed: then it
  /// waits for the processes that take the place of lost ones. Errors as new_group.
  ProcessGroup default_group();

  /// A group of these ranks (distinct), its members in their order; only they need to call it, those of the
  /// same ranks in the same order. A process that is not among them gets a group that it can only ask for its
  /// members. Where a member was lost, waits for the process that takes its place. Throws collective_error
  /// when a member is lost meanwhile or does not come in time, bad_input where the backend cannot carry it,
  /// std::invalid_argument, and job_failed.
  ProcessGroup new_group(const std::vector<int>& ranks, const group_options& options = {});

  /// The processes as a grid; the sizes' product is world_size().
  ProcessMesh mesh(std::vector<mesh_axis> axes) const;

  /// A group of this process's devices, for as many threads, whatever the backend: group i is for the thread
  /// of device i, and ranks are device numbers here.
  std::vector<ProcessGroup> local_groups(const group_options& options = {});

 private:
  friend class Trainer;
  struct content;
  static void enter_frame(content& of);
  static World started(std::shared_ptr<content> shared);
  explicit World(std::shared_ptr<content> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<content> shared_;
};

}  // namespace troupe
