#pragma once
#include <future>
#include <map>
#include <thread>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_connections.hpp"
#include "troupe/cluster/key_values.hpp"
#include "troupe/cluster/membership_state.hpp"
#include "troupe/posix/posted_calls.hpp"

namespace troupe::cluster {

/// The agent: one thread that polls the connections, passes messages and timeouts to membership_state, and
/// performs the outputs it returns. Public functions post commands to that thread; all members below
/// `commands_` belong to it.
class agent_server final : public agent {
 public:
  agent_server(const agent_options& options, agent_callbacks callbacks);
  ~agent_server() override;
  std::uint16_t port() const override { return connections_.port(); }
  loss_outcome process_lost(int rank, const std::string& cause,
                            std::chrono::steady_clock::time_point detected,
                            std::optional<std::chrono::steady_clock::time_point> died) override;
  void process_exited(int rank) override;
  void fail_job(const std::string& cause) override;
  std::vector<int> stop_job(int signal) override;
  reported_failure failure_of(int rank, std::chrono::milliseconds at_most) override;

 private:
  using clock = std::chrono::steady_clock;

  /// A pending failure_of call.
  struct failure_question {
    int rank;
    clock::time_point until;
    std::promise<reported_failure> answer;
  };

  void run();
  void answer_failures();
  bool is_connected(int rank);
  bool may_stop();
  void serve(agent_connection& from);
  void drop_ended_connections();
  void send_heartbeats();
  void warn_of_descriptors();
  void warn_of_gap();

  void on_message(agent_connection& from, const agent_wire::client_message& message);
  void on_hello(agent_connection& from, const agent_wire::hello& message);
  void tell_end(agent_connection& to);
  void on_join(agent_connection& from, const agent_wire::join_job& message);
  void on_leave(agent_connection& from);
  membership_outputs on_member_message(int rank, const agent_wire::client_message& message);
  bool on_store_message(agent_connection& from, const agent_wire::client_message& message);
  void on_put(agent_connection& from, const agent_wire::put_value& message);
  void on_get(agent_connection& from, const agent_wire::get_value& message);
  void answer_waiting(const std::string& key);
  void drain(int rank);
  void drop_connections_of(int rank);

  void perform(const membership_outputs& outputs);
  void perform(const send_fence& fence);
  void perform(const send_view& view);
  void perform(const kill_process& kill);
  void perform(const send_recovered& recovered);
  void perform(const send_done& over);
  void perform(const send_stop& stop);
  void perform(const end_job& end);
  bool is_member(const agent_connection& connection) const;
  void send_to_members(const agent_wire::agent_message& message);

  agent_options options_;
  agent_callbacks callbacks_;
  posix::posted_calls commands_;

  membership_state state_;
  key_values keys_;
  agent_connections connections_;
  std::optional<agent_wire::agent_message> job_end_;  ///< what the members were told; none: it goes on
  std::map<int, reported_failure> failures_;          ///< by rank, reported by its current process
  std::vector<failure_question> questions_;
  clock::time_point next_heartbeat_{};
  clock::time_point last_round_ = clock::now();
  bool warned_of_descriptors_ = false;
  std::optional<clock::time_point> stop_asked_;
  std::thread thread_;
};

}  // namespace troupe::cluster
