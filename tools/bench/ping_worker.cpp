// Two processes that send one tensor to and fro over the transport, each answering from the transport's own
// thread: what is left of a hop without actors. Rank 0 prints the time of half a round trip.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/config/launch_environment.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trace/trace.hpp"
#include "troupe/transport/ucx_transport.hpp"
#include "workers.hpp"

namespace troupe::bench {
namespace {

struct ping_options {
  std::size_t round_trips = 1;
  std::int64_t size_bytes = 4;
};

/// One of the two processes.
class ping_process : public transport_events, public membership_events {
 public:
  explicit ping_process(const ping_options& options)
      : options_(options), payload_(tensor::zeros({options.size_bytes}, dtype::u8)) {}

  void run(const launch_environment& launch);
  int rank() const { return rank_; }
  std::vector<double> half_trips_us() const;

  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_tensor(int from_rank, const tensor_tag& tag, tensor value) override;
  void on_peer_error(int, const std::string& cause) override { end(cause); }
  void on_fence(std::uint64_t, const std::vector<member_loss>&) override {
    end("the other process was lost");
  }
  void on_view(const membership_view& view) override;
  void on_recovered(const recovery_report&) override {}
  void on_over() override {}
  void on_job_end(const std::string& cause) override { end(cause); }

 private:
  void end(const std::string& cause);
  template <class Condition>
  void wait_for(Condition condition);

  ping_options options_;
  tensor payload_;
  int rank_ = 0;
  std::unique_ptr<transport> transport_;
  std::vector<std::int64_t> arrivals_ns_;  ///< rank 0, progress thread, until done_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<membership_view> view_;
  bool other_is_ready_ = false, all_answered_ = false, done_ = false;
  std::string failure_;
};

template <class Condition>
void ping_process::wait_for(Condition condition) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return condition() || !failure_.empty(); });
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void ping_process::end(const std::string& cause) {
  std::lock_guard lock(mutex_);
  if (all_answered_)
    done_ = true;
  else
    failure_ = cause;
  changed_.notify_all();
}

void ping_process::on_view(const membership_view& view) {
  std::lock_guard lock(mutex_);
  view_ = view;
  changed_.notify_all();
}

/// Step 0: the other one is connected. Step k: the k-th ping or its answer. After the last answer rank 0 says
/// step 0 again and goes; rank 1 goes when it hears that, or that rank 0 is gone.
void ping_process::on_tensor(int from_rank, const tensor_tag& tag, tensor value) {
  if (tag.step == 0) {
    std::lock_guard lock(mutex_);
    (rank_ == 0 ? other_is_ready_ : done_) = true;
    changed_.notify_all();
    return;
  }
  auto next = tag;
  if (rank_ == 0) {
    arrivals_ns_.push_back(now_ns());
    ++next.step;
    if (tag.step == options_.round_trips) next.step = 0;
  }
  auto is_last = tag.step == options_.round_trips;
  if (is_last) {  // before the other one hears of it, and may go
    std::lock_guard lock(mutex_);
    all_answered_ = true;
  }
  transport_->send_tensor(from_rank, next, std::move(value));
  if (!is_last || rank_ != 0) return;
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void ping_process::run(const launch_environment& launch) {
  rank_ = launch.rank;
  ucx_transport_options ucx;
  ucx.rank = rank_;
  ucx.secret = parse_job_secret(launch.secret_hex);
  transport_ = make_ucx_transport(ucx, *this);
  agent_client_options client;
  client.address = launch.master_addr;
  client.port = launch.master_port;
  client.secret = ucx.secret;
  client.rank = rank_;
  client.world_size = launch.world_size;
  auto members = connect_agent(client, *this);
  members->join({rank_, 0, ::getpid(), "", "none", transport_->begin_generation(0)});
  wait_for([this] { return view_.has_value(); });
  std::map<int, node_address> peers;
  for (const auto& one : view_->members) peers[one.rank] = one.address;
  arrivals_ns_.reserve(options_.round_trips + 1);
  transport_->connect(view_->generation, peers);
  tensor_tag tag;
  tag.generation = view_->generation;
  if (rank_ == 1) {
    transport_->send_tensor(0, tag, payload_);
  } else {
    wait_for([this] { return other_is_ready_; });
    arrivals_ns_.push_back(now_ns());
    tag.step = 1;
    transport_->send_tensor(1, tag, payload_);
  }
  wait_for([this] { return done_; });
  members->leave();
  members.reset();
  transport_.reset();
}

std::vector<double> ping_process::half_trips_us() const {
  std::vector<double> halves;
  for (std::size_t i = 1; i < arrivals_ns_.size(); ++i)
    halves.push_back(0.5e-3 * static_cast<double>(arrivals_ns_[i] - arrivals_ns_[i - 1]));
  return halves;
}

void run(const ping_options& options) {
  auto launch = read_launch_environment(process_environment());
  if (!launch || launch->world_size != 2) throw bad_input("ping is one of two processes of `troupe launch`");
  ping_process process(options);
  process.run(*launch);
  if (process.rank() == 0)
    std::printf("%s\n", nlohmann::json{{"half_trips_us", process.half_trips_us()}}.dump().c_str());
}

}  // namespace

void add_ping_worker(CLI::App& app) {
  auto options = std::make_shared<ping_options>();
  auto* command = app.add_subcommand("ping", "One of two processes that send a tensor to and fro");
  command->add_option("--round-trips", options->round_trips, "Round trips");
  command->add_option("--bytes", options->size_bytes, "Size of the tensor");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
