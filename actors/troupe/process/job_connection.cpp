#include "troupe/process/job_connection.hpp"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/local_membership.hpp"
#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/transport/loopback_transport.hpp"
#include "troupe/transport/ucx_transport/ucx_transport.hpp"

namespace troupe::actors::process {
namespace {

/// Under a launcher, whose agent is there before its processes: the launcher ends them when its own
/// --join-timeout is over.
constexpr std::chrono::hours launched_connect_timeout{1};

}  // namespace

job_connection::job_connection(const process_options& options, event_router& events) : options_(options) {
  if (options_.launch) {
    connect(*options_.launch, events);
    return;
  }
  derive_tokens(messaging::make_job_secret());
  transport_ = make_loopback_transport(events);
  members_ = make_local_membership(events);
}

void job_connection::connect(const launch_environment& launch, event_router& events) {
  auto secret = job_secret(launch);
  derive_tokens(secret);
  if (!launch.launched_by_troupe && launch.rank == 0) start_agent(launch, secret);
  transport::ucx_transport_options ucx;
  ucx.rank = launch.rank;
  ucx.world_size = launch.world_size;
  if (!launch.launched_by_troupe && options_.network_interface == "lo" &&
      !messaging::is_only_loopback(launch.master_addr))
    ucx.connection_advice =
        ". Its address is one of --network-interface lo, which reaches this host only, but MASTER_ADDR is " +
        launch.master_addr +
        ": if the job has several hosts, give --network-interface NAME in all processes (`troupe doctor` "
        "lists the names)";
  ucx.secret = secret;
  ucx.interface = options_.network_interface;
  ucx.verify_frames = options_.verify_frames;
  ucx.delay = options_.delay;
  ucx.on_unshared_memory = [log = options_.log](const std::string& cause) {
    log->warn("no memory for gradients that processes of this host read in place: they are copied ({})",
              cause);
  };
  ucx.on_unreadable_memory = [log = options_.log](const std::string& cause) {
    log->warn(
        "other processes may not read this one's memory, so that its tensors are copied once more (cause: "
        "process_vm_readv: {}; the program's file must be readable, and no security module forbid tracing)",
        cause);
  };
  transport_ = make_ucx_transport(ucx, events);
  cluster::agent_client_options client;
  client.address = launch.master_addr;
  client.port = launch.master_port;
  client.secret = secret;
  client.rank = launch.rank;
  client.world_size = launch.world_size;
  client.incarnation = launch.incarnation;
  client.connect_timeout = launch.launched_by_troupe ? launched_connect_timeout : options_.join_timeout;
  client.on_waiting = [log = options_.log](const std::string& what) { log->warn(what); };
  members_ = connect_agent(client, events);
}

void job_connection::derive_tokens(const std::vector<std::byte>& secret) {
  group_token_ = messaging::derived_token(secret, "groups");
  inspector_token_ = messaging::derived_token(secret, "inspector");
}

/// From the launcher. Without one rank 0 publishes a secret in a file, which works on one host.
std::vector<std::byte> job_connection::job_secret(const launch_environment& launch) {
  if (!launch.secret_hex.empty()) return messaging::parse_job_secret(launch.secret_hex);
  std::vector<std::filesystem::path> folders(launch.runtime_folders.begin(), launch.runtime_folders.end());
  if (launch.rank != 0)
    return messaging::wait_for_job_secret(folders, launch.master_port, options_.join_timeout);
  published_ = std::make_unique<messaging::published_job_secret>(folders, launch.master_port);
  return published_->secret();
}

/// Without a launcher rank 0 hosts the agent, and lost processes are not restarted.
void job_connection::start_agent(const launch_environment& launch, const std::vector<std::byte>& secret) {
  cluster::agent_options made;
  made.address = launch.master_addr;
  made.port = launch.master_port;
  made.secret = secret;
  made.world_size = launch.world_size;
  made.join_timeout = options_.join_timeout;
  made.suspect_after = options_.suspect_after;
  made.replaces_lost_members = false;
  made.has_other_hosts = true;
  cluster::agent_callbacks tells;
  tells.on_warning = [log = options_.log](const std::string& what) { log->warn(what); };
  agent_ = make_agent(made, std::move(tells));
}

bool job_connection::ends_job() const {
  return agent_ || (options_.launch && !options_.launch->launched_by_troupe);
}

void job_connection::join(const std::string& host) {
  cluster::member self;
  self.rank = options_.launch ? options_.launch->rank : 0;
  self.incarnation = options_.launch ? options_.launch->incarnation : 0;
  self.pid = ::getpid();
  self.host = host;
  self.numeric_class = options_.numeric_class;
  self.address = transport_->begin_generation(0);
  members_->join(self);
}

std::string job_connection::unique_job_id(const std::string& given) {
  if (!options_.launch || options_.launch->launched_by_troupe) return given;
  const std::string key = "job/drawn";
  if (options_.launch->rank == 0) {
    auto text = wire::to_hex(messaging::make_job_secret()).substr(0, 8);
    members_->keys().put(key, std::as_bytes(std::span(text)));
  }
  std::optional<std::vector<std::byte>> drawn;
  while (!drawn) drawn = members_->keys().get(key, options_.join_timeout);
  return given + "/" + std::string(reinterpret_cast<const char*>(drawn->data()), drawn->size());
}

}  // namespace troupe::actors::process
