#include "troupe/collective/post_mortem.hpp"

#include <algorithm>
#include <set>

namespace troupe {

std::vector<member_state> post_mortem::examine(const members_words& words) const {
  std::set<int> awaited;
  for (const auto& each : words)
    if (each) awaited.insert(each->awaited.begin(), each->awaited.end());
  std::vector<member_state> states;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    const auto& its = words[static_cast<std::size_t>(i)];
    bool is_waiting = its && !its->awaited.empty();
    states.push_back({i, its ? its->doing : "says nothing", awaited.contains(i) && !is_waiting});
  }
  return states;
}

std::string post_mortem::text_of(const failed_call& call) const {
  if (call.sequence == 0) return "group " + group_.name;
  return to_string(call.signature) + ", call " + std::to_string(call.sequence) + " of group " + group_.name;
}

collective_error post_mortem::timed_out(const call& late, const std::vector<member_state>& states,
                                        const std::string& recent_calls) const {
  std::vector<int> missing;
  std::string told;
  for (const auto& state : states) {
    bool is_missed = late.what.peer >= 0 ? state.member == late.what.peer : state.is_behind;
    if (is_missed) missing.push_back(rank_of(state.member));
    told += "; " + rank_text(state.member) + ' ' + state.doing;
  }
  return {collective_failure::timed_out, group_.name, late.sequence, std::move(missing),
          text_of({late.what.signature, late.sequence}) + ", did not end within " +
              std::to_string(late.options.timeout.count()) + " ms on " + rank_text(group_.member) + told +
              ". Its last calls:\n" + recent_calls};
}

collective_error post_mortem::cancelled(const failed_call& unwanted) const {
  return {collective_failure::cancelled,
          group_.name,
          unwanted.sequence,
          {},
          text_of(unwanted) + ", was cancelled on " + rank_text(group_.member)};
}

collective_error post_mortem::given_up(int from, const last_words& words) const {
  auto ranks = words.ranks;
  if (ranks.empty()) ranks.push_back(rank_of(from));
  return {words.gave_up.value_or(collective_failure::transport), group_.name, words.sequence,
          std::move(ranks), "group " + group_.name + ": " + rank_text(from) + " gave up: " + words.cause};
}

collective_error post_mortem::lost(const failed_call& of, int member, const std::string& how,
                                   const std::string& doing) const {
  return {collective_failure::lost_member,
          group_.name,
          of.sequence,
          {rank_of(member)},
          text_of(of) + ": " + how + "; it " + doing};
}

collective_error post_mortem::mismatch(const failed_call& own, int other,
                                       const call_signature& theirs) const {
  auto [least, most] = std::minmax({rank_of(group_.member), rank_of(other)});
  return {collective_failure::mismatch,
          group_.name,
          own.sequence,
          {least, most},
          "call " + std::to_string(own.sequence) + " of group " + group_.name + " is " +
              to_string(own.signature) + " on " + rank_text(group_.member) + " but " + to_string(theirs) +
              " on " + rank_text(other) + ": all members must make the same calls in the same order"};
}

collective_error post_mortem::wrong_message(const failed_call& expected, int from,
                                            const call_signature& theirs) const {
  return {collective_failure::mismatch,
          group_.name,
          expected.sequence,
          {rank_of(from)},
          "message " + std::to_string(expected.sequence) + " from " + rank_text(from) + " in group " +
              group_.name + ": expected " + to_string(expected.signature) + ", got " + to_string(theirs)};
}

collective_error post_mortem::failed_here(const failed_call& of, const std::string& problem) const {
  return {collective_failure::transport,
          group_.name,
          of.sequence,
          {rank_of(group_.member)},
          text_of(of) + ", failed on " + rank_text(group_.member) + ": " + problem};
}

collective_error post_mortem::refused(const failed_call& of, const std::string& problem,
                                      const members_words& words) const {
  auto kind = collective_failure::transport;
  std::vector<int> silent;
  std::string message = failed_here(of, problem).what();
  for (int i = 0; i < group_.size(); ++i) {
    const auto& its = words[static_cast<std::size_t>(i)];
    if (i == group_.member) continue;
    if (its && its->gave_up && !its->cause.empty()) return given_up(i, *its);
    if (!its) silent.push_back(rank_of(i));
    if (its && its->gave_up) kind = *its->gave_up;
    message += "; " + rank_text(i) + ' ' + (its ? its->doing : "says nothing");
  }
  if (kind == collective_failure::transport && !silent.empty()) kind = collective_failure::lost_member;
  return {kind, group_.name, of.sequence, std::move(silent), message};
}

}  // namespace troupe
