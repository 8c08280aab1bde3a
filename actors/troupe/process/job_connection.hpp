#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/membership.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/process/event_router.hpp"
#include "troupe/process/process.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::process {

/// This process's connection to its job: transport and membership, and the agent itself where this process is
/// rank 0 of a job without launcher. A job of one process without launcher opens no socket.
class job_connection {
 public:
  /// Starts or reaches the agent and creates the transport. Both arguments must outlive the connection.
  /// Throws bad_input (wrong secret, port in use, ...), system_failure, or what UCX throws.
  job_connection(const process_options& options, event_router& events);

  transport::transport& data() { return *transport_; }
  cluster::membership& members() { return *members_; }
  /// Authenticates the connections of process groups; derived from the job's secret.
  const std::string& group_token() const { return group_token_; }
  /// For the inspector, another one derived from the secret: a process that replaces rank 0 has it too.
  const std::string& inspector_token() const { return inspector_token_; }
  /// Whether the end of this process ends the job: it hosts the agent, or no launcher restarts it.
  bool ends_job() const;

  /// Joins the job as a member.
  void join(const std::string& host);
  /// Returns `given`, made unique for this job. Ids of jobs without `troupe launch` (a port, a Slurm job id)
  /// may repeat, and snapshots of an earlier job with the same id may exist. So rank 0 draws a suffix and
  /// shares it through the key-value store. Blocks until it has; throws when the job ends.
  std::string unique_job_id(const std::string& given);

 private:
  std::vector<std::byte> job_secret(const launch_environment& launch);
  void derive_tokens(const std::vector<std::byte>& secret);
  void start_agent(const launch_environment& launch, const std::vector<std::byte>& secret);
  void connect(const launch_environment& launch, event_router& events);

  const process_options& options_;
  std::string group_token_, inspector_token_;
  std::unique_ptr<messaging::published_job_secret> published_;
  std::unique_ptr<cluster::agent> agent_;
  std::unique_ptr<transport::transport> transport_;
  std::unique_ptr<cluster::membership> members_;
};

}  // namespace troupe::actors::process
