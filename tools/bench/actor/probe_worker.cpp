// Two processes whose probe actors send tensors to and fro. Rank 0 prints, for each size, the times of half a
// round trip and the rate of a stream.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/measure/byte_sizes.hpp"
#include "bench/processes/workers.hpp"
#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/config/launch_environment.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/probe/link_probe.hpp"
#include "troupe/transport/ucx_transport.hpp"

namespace troupe::bench {
namespace {

struct probe_worker_options {
  std::uint64_t round_trips = 1, stream_messages = 1, window = 1;
  std::string bytes = "8";
  std::int64_t spin_us = 0;
  std::string transports;
};

/// One of the two processes.
class probing_process : public transport_events, public membership_events {
 public:
  probing_process(const probe_worker_options& options, const launch_environment& launch)
      : options_(options), launch_(launch) {}
  void run();

  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_tensor(int, const tensor_tag& tag, tensor value) override;
  void on_peer_error(int, const std::string& cause) override { end(cause); }
  void on_fence(std::uint64_t, const std::vector<member_loss>&) override {
    end("the other process was lost");
  }
  void on_view(const membership_view& view) override;
  void on_recovered(const recovery_report&) override {}
  void on_over() override { end(""); }
  void on_job_end(const std::string& cause) override { end(cause); }
  void on_stop(int) override { end("the job is to stop"); }
  void on_job_stopped(int, const std::string& what) override { end("the job was stopped: " + what); }

 private:
  struct early_tensor {
    tensor_tag tag;
    tensor value;
  };
  void end(const std::string& cause);
  void connect(const membership_view& view);
  void measure(std::int64_t size_bytes);

  probe_worker_options options_;
  launch_environment launch_;
  std::unique_ptr<transport> transport_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<membership_view> view_;
  std::optional<std::string> ended_;  ///< why; empty if all is done
  std::unique_ptr<link_probe> probe_;
  std::vector<early_tensor> early_;  ///< came before there was a probe
};

void probing_process::on_view(const membership_view& view) {
  std::lock_guard lock(mutex_);
  view_ = view;
  changed_.notify_all();
}

void probing_process::on_tensor(int, const tensor_tag& tag, tensor value) {
  std::lock_guard lock(mutex_);
  if (probe_)
    probe_->deliver(tag, std::move(value));
  else
    early_.push_back({tag, std::move(value)});
}

void probing_process::end(const std::string& cause) {
  std::lock_guard lock(mutex_);
  if (!ended_) ended_ = cause;
  if (probe_) probe_->lost(cause);
  changed_.notify_all();
}

void probing_process::connect(const membership_view& view) {
  std::map<int, node_address> peers;
  for (const auto& one : view.members) peers[one.rank] = one.address;
  transport_->connect(view.generation, peers);
  std::lock_guard lock(mutex_);
  probe_ = link_probe::start({1 - launch_.rank, view.generation, transport_.get()});
  for (auto& early : early_) probe_->deliver(early.tag, std::move(early.value));
}

void probing_process::measure(std::int64_t size_bytes) {
  probe_plan plan;
  plan.size_bytes = size_bytes;
  plan.spin = std::chrono::microseconds(options_.spin_us);
  plan.messages = options_.round_trips;
  auto times = probe_->ask(plan);
  std::vector<double> halves;
  for (std::size_t i = 1; i < times.size(); ++i)
    halves.push_back(0.5e-3 * static_cast<double>(times[i] - times[i - 1]));
  plan.messages = options_.stream_messages;
  plan.window = options_.window;
  plan.answer_in_full = false;
  times = probe_->ask(plan);
  // GB/s: bytes a nanosecond.
  auto rate = static_cast<double>(plan.messages) * static_cast<double>(size_bytes) /
              static_cast<double>(times.back() - times.front());
  std::printf(
      "%s\n",
      nlohmann::json{{"bytes", size_bytes}, {"half_trips_us", halves}, {"stream_GBps", rate}}.dump().c_str());
}

void probing_process::run() {
  ucx_transport_options ucx;
  ucx.rank = launch_.rank;
  ucx.secret = parse_job_secret(launch_.secret_hex);
  ucx.data_transports = options_.transports;
  transport_ = make_ucx_transport(ucx, *this);
  agent_client_options client;
  client.address = launch_.master_addr;
  client.port = launch_.master_port;
  client.secret = ucx.secret;
  client.rank = launch_.rank;
  client.world_size = launch_.world_size;
  auto members = connect_agent(client, *this);
  members->join({launch_.rank, 0, ::getpid(), "", "none", transport_->begin_generation(0)});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return view_ || ended_; });
  if (ended_) throw std::runtime_error(*ended_);
  lock.unlock();
  connect(*view_);
  if (launch_.rank == 0) {
    for (auto size : byte_sizes_from(options_.bytes)) measure(size);
  } else {
    probe_->answer(std::chrono::microseconds(options_.spin_us));
    lock.lock();
    changed_.wait(lock, [this] { return ended_.has_value(); });
    lock.unlock();
  }
  members->leave();
  members.reset();
  lock.lock();
  auto probe = std::move(probe_);
  lock.unlock();
  probe.reset();
  transport_.reset();
}

void run(const probe_worker_options& options) {
  auto launch = read_launch_environment(process_environment());
  if (!launch || launch->world_size != 2) throw bad_input("probe is one of two processes of `troupe launch`");
  probing_process(options, *launch).run();
}

}  // namespace

void add_probe_worker(CLI::App& app) {
  auto options = std::make_shared<probe_worker_options>();
  auto* command = app.add_subcommand("probe", "One of two processes whose actors send tensors to and fro");
  command->add_option("--round-trips", options->round_trips, "Round trips");
  command->add_option("--stream", options->stream_messages, "Tensors of a stream");
  command->add_option("--window", options->window, "How many of them may be unanswered");
  command->add_option("--bytes", options->bytes, "Sizes of the tensors");
  command->add_option("--spin-us", options->spin_us, "How long to poll before sleeping");
  command->add_option("--transports", options->transports, "UCX transports; none: as in a job");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
