#pragma once
#include <csignal>
#include <memory>

#include "troupe/collective/group/group_backend.hpp"
#include "troupe/config/job_options.hpp"
#include "troupe/process_group.hpp"
#include "troupe/process_mesh.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

namespace actors::process {
class process;
}  // namespace actors::process

/// The processes of a job, as seen by one of them. Movable; not thread-safe. When the last handle is
/// destroyed (a Trainer holds one too), the runtime shuts down and another World may be created.
class World {
 public:
  /// Joins the job that the environment describes (`troupe launch`, `mpirun`, `srun`, or RANK, WORLD_SIZE,
  /// MASTER_ADDR and MASTER_PORT by hand); without any of these, starts a job of this one process. Each
  /// process has `options.devices` devices. Returns when this process is connected; others may still be
  /// starting. `linked` lists the backends that `options.backend` may name besides ucx and local, such as
  /// gloo_groups() of troupe::collective_gloo, or every_backend(). Throws bad_input with what to do
  /// (incomplete environment, wrong secret, port in use, unknown backend, ...).
  static World init(const job_options& options = {}, const std::vector<group_backend>& linked = {});

  /// Starts a job of this one process with `devices` devices, independent of the environment: no launcher,
  /// ports or files.
  static World local(int devices, job_options options = {}, const std::vector<group_backend>& linked = {});

  world_rank rank() const;
  int world_size() const;
  int local_rank() const;
  /// The most devices that all processes together can have; a pipeline of fewer stages uses only as many.
  int num_devices() const;
  /// Where the process's device `index`, of job_options::devices, computes (job_options::device), for loops
  /// of one's own: `model.to(world.device())`. A program that tells run_program which options it uses names
  /// "device" among them. Throws std::invalid_argument for a device that it does not have.
  troupe::device device(int index = 0) const;
  const job_options& options() const;
  /// Returns when every process has called it. Throws job_failed; in a program without a Trainer also, naming
  /// the missing ranks, if none has come for options().progress_timeout.
  void barrier();

  /// Whether the newest call of this process returned a result that was computed before: by an earlier
  /// process of this rank, which was lost, or by the job from whose snapshot this one resumes. A program that
  /// acts on results outside of the job, such as by printing them, asks this to do so once; its calls are
  /// made all the same. An earlier process may have ended before it acted on the last one. Before the first
  /// call: whether this process replaces a lost one. Thread-safe.
  bool is_replaying() const;

  /// Asks the whole job to stop: at the end of a step the state is saved to the snapshot folder, if there is
  /// one, and then the calls of all processes throw job_stopped. `signal` determines run_program's exit code,
  /// 128 + signal. Returns at once; thread-safe. run_program calls it at SIGTERM, SIGINT and SIGHUP; a
  /// program with its own signal handling calls it itself.
  void request_stop(int signal = SIGTERM);

  /// The group of all processes. All processes form it together at the first call, and form a new one after
  /// it has failed; then the call waits for the replacements of lost processes. Throws as new_group.
  ProcessGroup default_group();

  /// Creates a group of the distinct ranks `ranks`, with its members in this order. Only the members need to
  /// call it; if they create several groups of the same ranks, all members create them in the same order.
  /// Other processes get a group that only gives its members. Waits for the replacement of a lost member.
  /// Throws collective_error if a member is lost meanwhile or does not call within the timeout, bad_input if
  /// the backend does not support the group, std::invalid_argument for invalid ranks, and job_failed.
  ProcessGroup new_group(const std::vector<world_rank>& ranks, const group_options& options = {});

  /// The processes as a grid; the product of the axes' sizes must be world_size().
  ProcessMesh mesh(std::vector<collective::mesh_axis> axes) const;

  /// Creates a group over the devices of this process, independent of the backend, for use by one thread per
  /// device: element i is for the thread of device i, and ranks are device indices.
  std::vector<ProcessGroup> local_groups(const group_options& options = {});

 private:
  friend class Trainer;
  struct state;
  static void enter_frame(state& shared);
  static World started(std::shared_ptr<state> shared);
  explicit World(std::shared_ptr<state> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<state> shared_;
};

}  // namespace troupe
