#include "troupe/cluster/agent_store.hpp"

#include "troupe/cluster/key_values.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"

namespace troupe::cluster {
namespace {

/// An agent that works answers much sooner.
constexpr auto answer_timeout = std::chrono::seconds(60);

void require_key(const std::string& key, const char* where) {
  if (key.size() > key_values::max_key_bytes)
    throw_invalid(where, "a key of at most " + std::to_string(key_values::max_key_bytes) + " bytes",
                  std::to_string(key.size()));
}

}  // namespace

void agent_store::put(const std::string& key, std::span<const std::byte> value) {
  // A longer key would exceed the size limit of a frame.
  require_key(key, "store::put");
  if (value.size() > key_values::max_value_bytes)
    throw_invalid("store::put",
                  "a value of at most " + std::to_string(key_values::max_value_bytes) + " bytes for " + key,
                  std::to_string(value.size()));
  auto number = begin();
  send_(agent_wire::put_value{number, key, {value.begin(), value.end()}});
  auto reply = await(number, answer_timeout);
  if (!reply) throw job_failed("the job's agent has not answered for 60 s");
  if (!reply->refusal.empty()) throw_invalid("store::put", "room for " + key, reply->refusal);
}

std::optional<std::vector<std::byte>> agent_store::get(const std::string& key,
                                                       std::chrono::milliseconds timeout) {
  require_key(key, "store::get");
  auto number = begin();
  send_(agent_wire::get_value{number, key});
  auto reply = await(number, timeout);
  if (!reply) {
    send_(agent_wire::forget_request{number});
    return {};
  }
  if (!reply->refusal.empty()) throw_invalid("store::get", "a valid request for " + key, reply->refusal);
  return std::move(reply->value);
}

void agent_store::on_reply(const agent_wire::store_reply& reply) {
  std::lock_guard lock(mutex_);
  auto found = requests_.find(reply.request);
  if (found == requests_.end()) return;  // the request has timed out meanwhile
  found->second = {true, reply};
  changed_.notify_all();
}

void agent_store::close(const std::string& cause, int stop_signal) {
  std::lock_guard lock(mutex_);
  if (!closed_) {
    closed_ = cause;
    stop_signal_ = stop_signal;
  }
  changed_.notify_all();
}

void agent_store::throw_if_closed() const {
  if (closed_ && stop_signal_) throw job_stopped(stop_signal_, *closed_);
  if (closed_) throw job_failed(*closed_);
}

std::uint64_t agent_store::begin() {
  std::lock_guard lock(mutex_);
  throw_if_closed();
  requests_[++last_request_];
  return last_request_;
}

std::optional<agent_wire::store_reply> agent_store::await(std::uint64_t number,
                                                          std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return closed_ || requests_.at(number).answered; });
  auto ended = std::move(requests_.extract(number).mapped());
  if (ended.answered) return std::move(ended.reply);
  throw_if_closed();
  return {};
}

}  // namespace troupe::cluster
