#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/cluster/recovery_clock.hpp"

namespace troupe::cluster {

/// How a job treats its members. The fields are those of agent_options.
struct membership_rules {
  int world_size = 1;
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);
  bool replaces_lost_members = true;
  /// How long a member that said it fails may take to end before it is suspected.
  std::chrono::milliseconds dying_time = std::chrono::seconds(5);
};

/// The outputs of membership_state: actions for the caller, in order.
struct send_fence {
  std::uint64_t generation = 0;
  std::vector<member_loss> losses;  ///< all since the last view
  std::vector<int> to;
  bool operator==(const send_fence&) const = default;
};
struct send_view {  ///< to every member
  membership_view view;
  bool operator==(const send_view&) const = default;
};
struct kill_process {
  int rank = 0;
  std::uint32_t incarnation = 0;
  std::string cause;
  bool operator==(const kill_process&) const = default;
};
struct send_recovered {  ///< to every member
  recovery_report report;
};
struct send_done {  ///< to every member: the job is done
  bool operator==(const send_done&) const = default;
};
struct send_stop {  ///< to every member
  int signal = 0;
  bool operator==(const send_stop&) const = default;
};
struct end_job {  ///< to all members, as the last message
  std::string cause;
  int signal = 0;                           ///< the signal that stopped the job; 0: it failed
  failure_kind kind = failure_kind::error;  ///< of a job that failed
  bool operator==(const end_job&) const = default;
};
using membership_output =
    std::variant<send_fence, send_view, kill_process, send_recovered, send_done, send_stop, end_job>;
using membership_outputs = std::vector<membership_output>;

/// The state machine of the agent: which processes are members, and the generation. Events and times go in,
/// actions come out; it does no input or output and reads no clock.
///
/// Each rank is *awaited*, then *joined*, then *left*; a loss makes it awaited again, with the next
/// incarnation. A generation is *forming* until every rank is joined and has acknowledged it, then its view
/// is sent. Every loss and every request raises the generation and fences the members there are; one that
/// joins while a generation is forming has acknowledged it by joining. No view is formed while a suspect is
/// still to be killed.
///
/// A rank leaves after the last call, which all ranks make together. So when the first one leaves, the job is
/// *done*: all members are notified, and losses no longer matter.
///
/// Messages of members carry rank and incarnation; the caller drops those whose is_member() is false.
class membership_state {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  membership_state(const membership_rules& rules, time_point now);

  /// Why a process must not join as `rank`; none if it may.
  std::optional<std::string> refusal(int rank, std::uint32_t incarnation) const;
  bool is_member(int rank, std::uint32_t incarnation) const;
  bool is_present(int rank) const { return slots_.at(rank).state == status::joined; }
  bool has_left(int rank) const { return slots_.at(rank).state == status::left; }
  bool job_ended() const { return ended_; }
  bool is_done() const { return over_; }
  /// Members that have joined and not left.
  int num_present() const;
  std::uint64_t generation() const { return generation_; }

  /// A process that refusal() accepts becomes a member.
  membership_outputs joined(const member& self, time_point now);
  /// Records that a message of the member arrived.
  void heard(int rank, time_point now) { slots_.at(rank).heard = now; }
  /// The member stops for the generation when its actions end.
  membership_outputs still_computing(int rank, std::uint64_t generation, time_point now);
  membership_outputs quiesced(int rank, std::uint64_t generation, const transport::process_address& address,
                              time_point now);
  /// Stale requests (of a generation that is over) do nothing.
  membership_outputs generation_requested(std::uint64_t current, const std::string& cause, time_point now);
  /// Stale suspicions (of an incarnation that is gone) do nothing.
  membership_outputs suspected(int rank, std::uint32_t incarnation, const std::string& cause, time_point now);
  membership_outputs phase_reached(std::uint64_t generation, recovery_phase phase, time_point now);
  membership_outputs left(int rank, time_point now);
  /// A member's connection ended although it has not left. With a launcher this waits for process_lost; a
  /// process that lives on without a connection is suspected for silence and killed.
  membership_outputs connection_lost(int rank, time_point now);
  /// The process has ended. See agent::process_lost.
  membership_outputs process_lost(int rank, const std::string& cause, time_point detected,
                                  std::optional<time_point> died, time_point now);
  /// The process ended with exit code 0: no failure if it has left, or if no process of the job joins.
  membership_outputs process_exited(int rank, time_point now);
  membership_outputs failed(const std::string& cause, failure_kind kind = failure_kind::error);
  /// The job is to stop. One that never had a view has nothing to save and ends at once; else every member is
  /// told, now and with every later view, until stopped().
  membership_outputs stop(int signal);
  /// `rank` was sent `signal`. Stops the job if every member was, or if losing one would end it anyway. A job
  /// that waits for its first members to join is not stopped: those asked end, and are started again.
  membership_outputs stop_asked(int rank, int signal);
  /// The state is saved: ends the job.
  membership_outputs stopped(const std::string& summary);
  /// Whether `rank` is or will be notified of a stop as a member.
  bool hears_of_stop(int rank) const;
  /// An error ends this member: see membership::failing.
  void failing(int rank, time_point now);
  bool is_failing(int rank) const { return slots_.at(rank).failing_since.has_value(); }
  /// Checks the timeouts. Call it several times within suspect_after. After a longer gap (the agent itself
  /// was suspended) silence is ignored once, and the gap does not count as time to join.
  membership_outputs tick(time_point now);

 private:
  /// gone: ended without leaving, and no replacement is awaited.
  enum class status { awaited, joined, left, gone };
  struct slot {
    status state = status::awaited;
    std::uint32_t least_incarnation = 0;  ///< of the process that may join
    time_point awaited_since;
    // while joined:
    member self;
    time_point heard;
    bool acknowledged = false;  ///< the generation that is forming
    time_point stopping_since;  ///< for it, or since it last said that it computes
    bool connected = true;
    bool exited = false;  ///< with code 0; its last messages may still arrive
    std::optional<time_point> suspected_at;
    std::optional<time_point> failing_since;
    int asked_to_stop = 0;  ///< the signal it requested a stop for; 0: none
  };

  membership_outputs raise(const member_loss& loss, time_point now);
  membership_outputs complete_view(time_point now);
  membership_outputs suspect(int rank, const std::string& cause, time_point now);
  membership_outputs lost_for_good(int rank, const std::string& cause);
  membership_outputs exited_without_leaving(int rank);
  membership_outputs gone(int rank);
  membership_outputs check_joined_in_time(time_point now);
  kill_process kill_late_replacement(int rank, time_point now);
  membership_outputs check_alive(int rank, time_point now);
  membership_outputs check_dying(int rank, time_point now);
  std::optional<int> first_in(status state) const;

  membership_rules rules_;
  std::vector<slot> slots_;
  std::uint64_t generation_ = 1;
  bool forming_ = true;
  bool ended_ = false;
  bool over_ = false;
  bool had_view_ = false;
  int stop_signal_ = 0;
  std::vector<member_loss> losses_;  ///< losses since the last view
  time_point last_tick_;
  recovery_clock recovery_;
};

}  // namespace troupe::cluster
