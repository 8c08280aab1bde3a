#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "simulated_job.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe::testing {

/// Delivers control frames between two processes in order, tensors in any order, and keeps the rules of
/// generations.
class simulated_transport : public transport::transport {
 public:
  simulated_transport(simulated_job& job, simulated_process& self) : job_(job), self_(self) {}
  int rank() const override;
  troupe::transport::process_address begin_generation(std::uint64_t generation) override;
  void connect(std::uint64_t generation,
               const std::map<int, troupe::transport::process_address>& peers) override;
  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override;
  void send_tensor(int to_rank, const troupe::transport::tensor_tag& tag, tensor value) override;
  troupe::transport::transport_statistics statistics() const override { return {}; }

  std::uint64_t data_generation = 0;

 private:
  simulated_job& job_;
  simulated_process& self_;
  std::uint64_t connected_generation_ = 0;
  std::map<int, int> id_of_rank_;
};

class simulated_membership : public cluster::membership {
 public:
  simulated_membership(simulated_job& job, simulated_process& self) : job_(job), self_(self) {}
  void join(const cluster::member& self) override;
  void still_computing(std::uint64_t generation) override;
  void quiesced(std::uint64_t generation, const troupe::transport::process_address& address) override;
  void request_generation(std::uint64_t current, const std::string& cause) override;
  void suspect(int rank, const std::string& cause) override;
  void report(const cluster::job_progress&) override {}
  void report(std::uint64_t generation, cluster::recovery_phase phase) override;
  void fail_job(const std::string& cause, failure_kind kind) override;
  void request_stop(int signal, cluster::stop_scope scope) override;
  void stopped(const std::string& what) override;
  void failing(const std::string&, failure_kind) override {}
  void leave() override;
  collective::store& keys() override { return keys_; }

 private:
  simulated_job& job_;
  simulated_process& self_;
  collective::memory_store keys_;
};

/// One process.
struct simulated_process {
  simulated_process(simulated_job& job, int with_id, int with_rank, std::uint32_t with_incarnation)
      : id(with_id), rank(with_rank), incarnation(with_incarnation), out(job, *this), members(job, *this) {}

  int id;
  int rank;
  std::uint32_t incarnation;
  bool alive = true;
  fault::fault_plan faults;
  trace::trace_recorder trace{0, 16};
  actors::link::inbound_gate gate;
  actors::supervisor::stage_directory directory;
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<actors::job::client_mailbox> client = std::make_shared<actors::job::client_mailbox>();
  std::shared_ptr<recovery::past_hosting> hosted = std::make_shared<recovery::past_hosting>();
  std::shared_ptr<actors::job::pause_record> pause = std::make_shared<actors::job::pause_record>();
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  simulated_transport out;
  simulated_membership members;
  caf::actor supervisor;
  /// Calls until an actor fails; 0: it does not.
  int program_calls_to_failure = 0;

  // the user
  std::size_t next_call = 0;
  bool in_call = false;
};

}  // namespace troupe::testing
