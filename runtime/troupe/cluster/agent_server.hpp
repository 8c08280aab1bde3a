#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_connection.hpp"
#include "troupe/cluster/key_values.hpp"
#include "troupe/cluster/membership_state.hpp"
#include "troupe/posix/unique_fd.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe {

/// The agent: one thread that polls the sockets, feeds the state machine and does what it says. Everything
/// below `commands_` belongs to that thread.
class agent_server final : public agent {
 public:
  agent_server(const agent_options& options, agent_callbacks callbacks);
  ~agent_server() override;
  std::uint16_t port() const override { return port_; }
  loss_outcome process_lost(int rank, const std::string& cause,
                            std::chrono::steady_clock::time_point detected,
                            std::optional<std::chrono::steady_clock::time_point> died) override;
  void process_exited(int rank) override;
  void fail_job(const std::string& cause) override;

 private:
  using clock = std::chrono::steady_clock;

  void post(std::function<void()> command);
  void run();
  void poll_once();
  bool may_stop();
  void run_commands();
  void accept_all();
  void make_room_for_stranger();
  void serve(agent_connection& from);
  void sweep();

  void on_message(agent_connection& from, const agent_wire::client_message& message);
  void on_hello(agent_connection& from, const agent_wire::hello& message);
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
  void perform(const send_over& over);
  void perform(const end_job& end);
  bool is_member(const agent_connection& connection) const;
  void send_to_members(const agent_wire::agent_message& message);

  agent_options options_;
  agent_callbacks callbacks_;
  unique_fd listener_;
  std::uint16_t port_ = 0;
  wake_event wake_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<std::function<void()>> commands_;

  membership_state state_;
  key_values keys_;
  std::list<agent_connection> connections_;
  std::string job_end_cause_;
  clock::time_point stop_asked_;
  bool accept_paused_ = false;
  std::thread thread_;
};

}  // namespace troupe
