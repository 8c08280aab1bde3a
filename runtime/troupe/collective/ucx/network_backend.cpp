#include "troupe/collective/ucx/network_backend.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "troupe/collective/network/algorithms.hpp"
#include "troupe/collective/ucx/last_words.hpp"
#include "troupe/collective/ucx/ucx_exchange.hpp"
#include "troupe/transport/ucx_library.hpp"
#include "troupe/transport/wakeup.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// A member that gave up says so before its connection ends: time to hear it.
constexpr auto loss_grace = std::chrono::milliseconds(50);
constexpr auto short_sleep = std::chrono::milliseconds(5);

std::string call_text(std::uint64_t sequence, const call_signature& signature) {
  return "call " + std::to_string(sequence) + ", " + to_string(signature);
}

class network_backend final : public collective_backend {
 public:
  network_backend(rendezvous& at, network_context& over);
  ~network_backend() override;

  std::string_view name() const override { return "ucx"; }
  std::string_view algorithm_of(const collective_operation&) const override { return "network"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  void progress() override;
  void check_members() override;
  void announce_sleep() override { wakeup_.announce_sleep(); }
  void cancel_sleep() override { wakeup_.cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override;
  void wake() override { wakeup_.wake(); }
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;

 private:
  void meet(rendezvous& at);
  std::string await_everyone(const rendezvous& at);
  algorithm chosen(const collective_operation& what, std::uint64_t sequence);
  member_report describe_self() const;
  std::string describe(int member) const;
  void ask_everyone();
  [[noreturn]] void report_loss(int member) const;
  int rank_of(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }
  template <class Visit>
  void for_others(Visit visit) const {
    for (int i = 0; i < group_.size(); ++i)
      if (i != group_.member) visit(i, exchange_->heard(i));
  }

  group_description group_;
  const network_options& options_;
  wakeup wakeup_;
  std::unique_ptr<ucx_exchange> exchange_;  ///< none when the group has failed
  bool has_moved_ = false;  ///< bytes of a call that is not done, when they were looked at last
  bool was_told_ = false;   ///< of the failure, by a member that tells all

  struct running_call {
    const collective_operation* what;
    std::uint64_t sequence;
  };
  std::vector<running_call> running_;
};

network_backend::network_backend(rendezvous& at, network_context& over)
    : group_(at.group()), options_(over.options()) {
  ucx_silence failures_are_reported_as_errors;
  exchange_ = std::make_unique<ucx_exchange>(
      over.get(), group_,
      ucx_exchange::callbacks{.describe = [this] { return encode_report(describe_self()); },
                              .on_giving_up =
                                  [this](int from, std::span<const std::byte> why) {
                                    was_told_ = true;
                                    throw decode_last_words(why, group_, from);
                                  }});
  meet(at);
}

void network_backend::meet(rendezvous& at) {
  std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  auto address = exchange_->address();
  std::string card(sizeof number, '\0');
  std::memcpy(card.data(), &number, sizeof number);
  card.append(reinterpret_cast<const char*>(address.data()), address.size());
  auto cards = at.all_gather("network address", card);
  std::uint64_t group_number = 0;
  for (auto& each : cards) {
    if (each.size() <= sizeof number) throw std::runtime_error("a member has no network address");
    std::memcpy(&number, each.data(), sizeof number);
    group_number ^= number;
    each.erase(0, sizeof number);
  }
  exchange_->connect(group_number, cards);
  for (const auto& verdict : at.all_gather("met", await_everyone(at)))
    if (!verdict.empty())
      throw collective_error(
          collective_failure::transport, group_.name, 0, {},
          "group " + group_.name + " has members that cannot reach each other: " + verdict);
}

/// Who cannot be reached, or nothing.
std::string network_backend::await_everyone(const rendezvous& at) {
  std::string missing;
  do {
    exchange_->progress();
    missing.clear();
    for_others([&](int i, const heard_of& heard) {
      if (!heard.has_come || !heard.lost_cause.empty())
        missing += "rank " + std::to_string(rank_of(i)) + " from rank " +
                   std::to_string(rank_of(group_.member)) + " over " + options_.interface +
                   (heard.lost_cause.empty() ? "" : " (" + heard.lost_cause + ")") + "; ";
    });
    if (!missing.empty()) sleep(short_sleep);
  } while (!missing.empty() && clock::now() < at.half_time());
  exchange_->flush(at.half_time());
  return missing;
}

network_backend::~network_backend() {
  if (!exchange_) return;
  ucx_silence lost_peers_are_expected;
  exchange_->tell_all(message_kind::leaving, {});
  exchange_->flush(clock::now() + options_.farewell);
}

algorithm network_backend::run(const collective_operation& what, std::uint64_t sequence) {
  running_.push_back({&what, sequence});
  auto part = chosen(what, sequence);
  co_await finished(part);
  std::erase_if(running_, [&](const running_call& each) { return each.what == &what; });
}

algorithm network_backend::chosen(const collective_operation& what, std::uint64_t sequence) {
  network::conversation at(*exchange_, group_, options_.sizes, what, sequence);
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return network::all_reduce(std::move(at));
    case collective_kind::reduce_scatter:
      return network::reduce_scatter(std::move(at));
    case collective_kind::all_gather:
      return network::all_gather(std::move(at));
    case collective_kind::broadcast:
      return network::broadcast(std::move(at));
    case collective_kind::reduce:
      return network::reduce(std::move(at));
    case collective_kind::gather:
      return network::gather(std::move(at));
    case collective_kind::scatter:
      return network::scatter(std::move(at));
    case collective_kind::all_to_all:
      return network::all_to_all(std::move(at));
    case collective_kind::send:
      return network::send(std::move(at));
    case collective_kind::receive:
      return network::receive(std::move(at));
    case collective_kind::barrier:
      break;
  }
  return network::barrier(std::move(at));
}

void network_backend::progress() {
  if (!exchange_) return;
  ucx_silence failures_are_reported_as_errors;
  has_moved_ = exchange_->progress();
}

void network_backend::check_members() {
  if (!exchange_) return;
  for_others([&](int i, const heard_of& heard) {
    bool is_lost = !heard.lost_cause.empty() && clock::now() - heard.lost_at > loss_grace;
    if (heard.num_awaited > 0 && (is_lost || heard.has_left)) report_loss(i);
  });
}

void network_backend::report_loss(int member) const {
  const auto& heard = exchange_->heard(member);
  auto rank = std::to_string(rank_of(member));
  auto sequence = running_.empty() ? 0 : running_.front().sequence;
  auto call = running_.empty() ? "group " + group_.name
                               : to_string(running_.front().what->signature) + ", call " +
                                     std::to_string(sequence) + " of group " + group_.name;
  auto cause = heard.has_left ? "rank " + rank + " has ended its part of the group"
                              : "the connection to rank " + rank + " has ended (" + heard.lost_cause + ')';
  throw collective_error(collective_failure::lost_member, group_.name, sequence, {rank_of(member)},
                         call + ": " + cause + "; it " + describe(member));
}

void network_backend::sleep(std::chrono::microseconds at_most) {
  if (!exchange_ || has_moved_ || !exchange_->arm()) return;
  wakeup_.sleep({exchange_->event_fd(), -1}, std::chrono::ceil<std::chrono::milliseconds>(at_most));
}

member_report network_backend::describe_self() const {
  member_report report;
  const auto& calls = exchange_->calls();
  if (running_.empty()) {
    auto newest = calls.newest();
    report.doing =
        newest == 0 ? "has called nothing yet"
                    : "has finished " + call_text(newest, *calls.find(newest)) + ", and called nothing since";
    return report;
  }
  for_others([&](int i, const heard_of& heard) {
    if (heard.num_awaited > 0) report.awaited.push_back(i);
  });
  report.doing = "is in " + call_text(running_.front().sequence, running_.front().what->signature);
  return report;
}

std::string network_backend::describe(int member) const {
  const auto& heard = exchange_->heard(member);
  if (heard.answer) return decode_report(*heard.answer).doing;
  if (heard.sequence == 0) return "was not heard of in any call";
  return "was heard of last in " + call_text(heard.sequence, heard.signature);
}

void network_backend::ask_everyone() {
  ucx_silence lost_peers_are_expected;
  exchange_->forget_answers();
  exchange_->tell_all(message_kind::question, {});
  for (auto end = clock::now() + options_.answers; clock::now() < end;) {
    exchange_->progress();
    bool all_answered = true;
    for_others([&](int, const heard_of& heard) {
      all_answered = all_answered && (heard.answer || !heard.lost_cause.empty());
    });
    if (all_answered) return;
    sleep(short_sleep);
  }
}

// Behind is who is waited for, by this member or by one that answers, and does not answer, or answers that it
// is in no call. (A member that has done its part of the call and computes now does not answer either, but
// nobody waits for it.)
std::vector<member_state> network_backend::examine(std::uint64_t sequence) {
  if (!exchange_) return {};
  ask_everyone();
  std::set<int> awaited;
  std::map<int, member_report> reports;
  for_others([&](int i, const heard_of& heard) {
    if (heard.num_awaited > 0) awaited.insert(i);
    if (!heard.answer) return;
    auto& report = reports.emplace(i, decode_report(*heard.answer)).first->second;
    awaited.insert(report.awaited.begin(), report.awaited.end());
  });
  std::vector<member_state> states;
  for_others([&](int i, const heard_of& heard) {
    auto report = reports.find(i);
    bool is_waiting = report != reports.end() && !report->second.awaited.empty();
    bool is_behind = awaited.contains(i) && !is_waiting;
    auto doing = describe(i) + (report == reports.end() ? ", and does not answer" : "");
    states.push_back({i, is_behind ? heard.sequence : std::max(heard.sequence, sequence), doing, is_behind});
  });
  return states;
}

void network_backend::abort(const collective_error& why) noexcept {
  if (!exchange_) return;
  try {
    ucx_silence lost_peers_are_expected;
    auto words = encode_last_words(why);
    if (!was_told_) {
      exchange_->tell_all(message_kind::giving_up, std::as_bytes(std::span(words)));
      exchange_->flush(clock::now() + options_.farewell);
    }
  } catch (const std::exception&) {
    was_told_ = true;  // they see the connection end
  }
  exchange_.reset();
  running_.clear();
}

}  // namespace

std::unique_ptr<collective_backend> make_network_backend(rendezvous& at, network_context& over) {
  return std::make_unique<network_backend>(at, over);
}

}  // namespace troupe
