#include "troupe/collective/ucx/network_backend.hpp"

#include "troupe/collective/network/algorithms.hpp"
#include "troupe/collective/ucx/connect_members.hpp"
#include "troupe/transport/ucx_library.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// A member that gave up says so before its connection ends: time to hear it.
constexpr auto loss_grace = std::chrono::milliseconds(50);
constexpr auto time_between_looks = std::chrono::milliseconds(5);

}  // namespace

network_backend::network_backend(rendezvous& at, network_context& over)
    : group_(at.group()), options_(over.options()) {
  ucx_silence failures_are_reported_as_errors;
  exchange_ = std::make_unique<ucx_exchange>(
      over.get(), group_,
      ucx_exchange::callbacks{.describe = [this] { return own_words(); },
                              .on_giving_up =
                                  [this](int from, const last_words& why) {
                                    told_ = why;
                                    throw post_mortem(group_).given_up(from, why);
                                  }});
  connect_members(*exchange_, at, options_.interface);
}

network_backend::~network_backend() {
  if (!exchange_) return;
  ucx_silence lost_peers_are_expected;
  exchange_->tell_all(message_kind::leaving);
  exchange_->connections().flush(clock::now() + options_.farewell);
}

algorithm network_backend::run(const collective_operation& what, std::uint64_t sequence) {
  running_.push_back({&what, sequence});
  auto part = chosen(what, sequence);
  co_await finished(part);
  std::erase_if(running_, [&](const running_call& each) { return each.what == &what; });
}

network::conversation network_backend::converse(const collective_operation& what, std::uint64_t sequence) {
  return {*exchange_, group_, options_.sizes, what, sequence};
}

algorithm network_backend::chosen(const collective_operation& what, std::uint64_t sequence) {
  auto at = converse(what, sequence);
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

bool network_backend::awaits(int member) const { return exchange_->heard(member).num_awaited > 0; }

void network_backend::check_members() {
  if (!exchange_) return;
  for_others([&](int i, const heard_of& heard) {
    bool is_lost = !heard.lost_cause.empty() && clock::now() - heard.lost_at > loss_grace;
    if (!(is_lost || heard.has_left) || !awaits(i)) return;
    hear_out();
    if (awaits(i)) report_loss(i);
  });
}

/// On a busy machine the time may have passed without a look at what came in it: that somebody gave up, which
/// ends this member too.
void network_backend::hear_out() {
  constexpr int most_rounds = 1000;
  for (int round = 0; round < most_rounds && exchange_->progress(); ++round) continue;
}

void network_backend::report_loss(int member) const {
  const auto& heard = exchange_->heard(member);
  post_mortem found(group_);
  auto rank = "rank " + std::to_string(found.rank_of(member));
  auto how = heard.has_left ? rank + " has ended its part of the group"
                            : "the connection to " + rank + " has ended (" + heard.lost_cause + ')';
  auto sequence = running_.empty() ? 0 : running_.front().sequence;
  call_signature none;
  throw found.lost({running_.empty() ? none : running_.front().what->signature, sequence}, member, how,
                   doing_of(member));
}

void network_backend::sleep(std::chrono::microseconds at_most) {
  if (!exchange_ || has_moved_ || !exchange_->connections().arm()) return;
  wakeup_.sleep({exchange_->connections().event_fd(), -1},
                std::chrono::ceil<std::chrono::milliseconds>(at_most));
}

last_words network_backend::own_words() const {
  const auto& calls = exchange_->calls();
  last_words words{.sequence = calls.newest()};
  if (running_.empty()) {
    if (const auto* newest = calls.find(words.sequence)) words.doing = doing_after(words.sequence, *newest);
    return words;
  }
  for_others([&](int i, const heard_of&) {
    if (awaits(i)) words.awaited.push_back(i);
  });
  words.doing = doing_in(running_.front().sequence, running_.front().what->signature);
  return words;
}

std::string network_backend::doing_of(int member) const {
  const auto& heard = exchange_->heard(member);
  if (heard.answer) return heard.answer->doing;
  if (heard.sequence == 0) return "was not heard of in any call";
  return "was heard of last in call " + std::to_string(heard.sequence) + ", " + to_string(heard.signature);
}

void network_backend::ask_everyone() {
  ucx_silence lost_peers_are_expected;
  exchange_->forget_answers();
  exchange_->tell_all(message_kind::question);
  for (auto end = clock::now() + options_.answers; clock::now() < end;) {
    exchange_->progress();
    bool all_answered = true;
    for_others([&](int, const heard_of& heard) {
      all_answered = all_answered && (heard.answer || !heard.lost_cause.empty());
    });
    if (all_answered) return;
    sleep(time_between_looks);
  }
}

std::vector<member_state> network_backend::examine(std::uint64_t) {
  if (!exchange_) return {};
  ask_everyone();
  members_words words(static_cast<std::size_t>(group_.size()));
  words[static_cast<std::size_t>(group_.member)] = own_words();
  for_others([&](int i, const heard_of& heard) { words[static_cast<std::size_t>(i)] = heard.answer; });
  auto states = post_mortem(group_).examine(words);
  for (auto& each : states)
    if (!words[static_cast<std::size_t>(each.member)])
      each.doing = doing_of(each.member) + ", and does not answer";
  return states;
}

void network_backend::abort(const collective_error& why) noexcept {
  if (!exchange_) return;
  try {
    ucx_silence lost_peers_are_expected;
    // What this member was told it passes on: the connection on which others would have heard it may have
    // ended before they read it.
    auto words = told_ ? *told_ : giving_up({.sequence = why.sequence()}, why);
    exchange_->tell_all(message_kind::giving_up, encoded(words));
    exchange_->connections().flush(clock::now() + options_.farewell);
  } catch (const std::exception&) {
    // They see the connection end.
  }
  exchange_.reset();
  running_.clear();
}

}  // namespace troupe
