#pragma once
#include <memory>

#include "troupe/config/job_options.hpp"

namespace troupe {

class node;

/// The processes of a job, seen from one of them. Movable; one thread uses it. When the last handle goes (a
/// Trainer holds one too) the runtime shuts down, and another World may begin.
class World {
 public:
  /// Joins the job that the environment tells of (`troupe launch`, `mpirun`, `srun`, or RANK, WORLD_SIZE,
  /// MASTER_ADDR and MASTER_PORT by hand); without any of these, a job of this one process. `options.devices`
  /// devices in each process. Returns when this process is connected; the others may still be starting.
  /// Throws bad_input (half an environment, wrong secret, port in use, ...) with what to do.
  static World init(const job_options& options = {});

  /// A job of this one process with `devices` devices, whatever the environment says: no launcher, ports or
  /// files.
  static World local(int devices, job_options options = {});

  int rank() const;
  int world_size() const;
  int local_rank() const;
  /// Devices in all processes together.
  int num_devices() const;
  const job_options& options() const;
  /// Returns when every process has called it. Throws job_failed.
  void barrier();

 private:
  friend class Trainer;
  struct content;
  explicit World(std::shared_ptr<content> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<content> shared_;
};

}  // namespace troupe
