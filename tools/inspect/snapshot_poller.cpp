#include "inspect/snapshot_poller.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include "inspect/commands/command_client.hpp"
#include "inspect/job_record.hpp"
#include "inspect/snapshot_source.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe {

snapshot_poller::snapshot_poller(const inspector_address& address, const std::filesystem::path& record)
    : thread_([this, address, record](const std::stop_token& stop) { work(stop, address, record); }) {}

snapshot_poller::state snapshot_poller::read() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void snapshot_poller::send(job_command command) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wait_.notify_one();
}

std::vector<command_answer> snapshot_poller::take_answers() {
  std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void snapshot_poller::send_commands(const inspector_address& address) {
  std::unique_lock lock(mutex_);
  auto commands = std::exchange(commands_, {});
  lock.unlock();
  for (const auto& command : commands) {
    auto answer = command_client(address).send(command);
    lock.lock();
    answers_.push_back(std::move(answer));
    lock.unlock();
    news_.set();
  }
}

void snapshot_poller::work(const std::stop_token& stop, const inspector_address& address,
                           const std::filesystem::path& record) {
  snapshot_source source(address);
  std::unique_ptr<job_record_writer> writer;
  while (!stop.stop_requested()) {
    auto begun = std::chrono::steady_clock::now();
    send_commands(address);
    std::optional<job_snapshot> made;
    std::string problem;
    bool is_refused = false;
    std::exception_ptr failure;
    try {
      made = source.read();
      if (!record.empty() && !writer) writer = std::make_unique<job_record_writer>(record);
      if (writer) writer->add(*made);
    } catch (const http::http_failure& why) {
      problem = why.what();
    } catch (const inspector_refusal& why) {
      problem = why.what();
      is_refused = true;
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    if (made) state_.newest = *std::move(made);
    if (problem.empty() || state_.problem.empty()) state_.problem_since_ms = posix::unix_now_ms();
    state_.problem = std::move(problem);
    state_.is_refused = is_refused;
    state_.failure = failure;
    news_.set();
    if (failure) return;
    wait_.wait_until(lock, stop, begun + interval, [this] { return !commands_.empty(); });
  }
}

}  // namespace troupe
