#include "troupe/collective/ucx/rendezvous.hpp"

#include <algorithm>

#include "troupe/collective/collective_error.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr auto time_between_looks = 100ms;

}  // namespace

rendezvous::rendezvous(const group_description& group, store& place, std::chrono::milliseconds timeout)
    : group_(group),
      place_(place),
      timeout_(timeout),
      deadline_(std::chrono::steady_clock::now() + timeout) {}

std::string rendezvous::key(const std::string& what, int member) const {
  std::string text = "group/" + group_.name;
  for (auto rank : group_.ranks) text += '/' + std::to_string(rank);
  return text + '/' + what + '/' + std::to_string(member);
}

void rendezvous::put(const std::string& what, const std::string& text) {
  place_.put(key(what, member()), std::as_bytes(std::span(text)));
}

std::string rendezvous::get(const std::string& what, int from) {
  while (true) {
    auto now = std::chrono::steady_clock::now();
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - now);
    auto bytes =
        place_.get(key(what, from), std::clamp<std::chrono::milliseconds>(left, 0ms, time_between_looks));
    if (bytes) return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    throw_if_ended(what);
    if (now < deadline_) continue;
    auto rank = rank_of(from);
    throw collective_error(collective_failure::timed_out, group_.name, 0, {rank},
                           "rank " + std::to_string(rank) + " did not come to make group " + group_.name +
                               " within " + std::to_string(timeout_.count()) + " ms (its " + what +
                               " is missing)");
  }
}

void rendezvous::throw_if_ended(const std::string& what) const {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    auto rank = rank_of(static_cast<int>(i));
    throw collective_error(collective_failure::lost_member, group_.name, 0, {rank},
                           "rank " + std::to_string(rank) + " ended while group " + group_.name +
                               " was made (before the " + what + " of all was there)");
  }
}

std::vector<std::string> rendezvous::all_gather(const std::string& what, const std::string& own) {
  put(what, own);
  std::vector<std::string> gathered;
  for (int i = 0; i < group_.size(); ++i) gathered.push_back(i == member() ? own : get(what, i));
  return gathered;
}

}  // namespace troupe
