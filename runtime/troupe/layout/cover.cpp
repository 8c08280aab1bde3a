#include "troupe/layout/cover.hpp"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace troupe::layout {
namespace {

struct holder {
  part_id part;
  const tensor_contents* held;
};
using holders = std::vector<holder>;

std::string described(const tensor_contents& one) {
  return one.name + " (" + std::string(to_string(one.type)) + to_string(shape(one.whole)) + ")";
}

/// The first of `earlier` that holds some of `elements`.
std::string text_of_double(const box& elements, const holders& earlier, const holder& again) {
  for (const auto& [part, held] : earlier)
    for (const auto& one : boxes_held(*held))
      if (auto common = intersection(one, elements))
        return described(*held) + " is held twice: " + to_string(*common) + " by " + to_string(part) +
               " and by " + to_string(again.part);
  return described(*again.held) + " is held twice: " + to_string(elements) + " by " + to_string(again.part);
}

/// Whether these together hold all of their tensor once.
std::string problem_of(const holders& all) {
  auto whole = whole_box(shape(all[0].held->whole));
  std::vector<box> missing;
  if (num_elements(whole) > 0) missing.push_back(whole);
  holders earlier;
  for (const auto& one : all) {
    for (const auto& piece : boxes_held(*one.held)) {
      std::vector<box> left;
      auto num_taken = num_elements(piece);
      for (const auto& hole : missing) {
        if (auto common = intersection(hole, piece)) num_taken -= num_elements(*common);
        for (auto& rest : difference(hole, piece)) left.push_back(std::move(rest));
      }
      if (num_taken != 0) return text_of_double(piece, earlier, one);
      missing = std::move(left);
    }
    earlier.push_back(one);
  }
  if (missing.empty()) return {};
  return "no part holds " + to_string(missing[0]) + " of " + described(*all[0].held) + " in " +
         to_string(part_id{{.stage = all[0].part.cell.stage, .replica = all[0].part.cell.replica}});
}

/// Of one stage and replica.
std::string problem_of_stage(const holders& all) {
  std::map<std::pair<int, int>, holders> by_part;  // slice, shard
  for (const auto& one : all) by_part[{one.part.cell.slice, one.part.shard}].push_back(one);
  bool alike = by_part.size() > 1;
  for (const auto& [part, some] : by_part) alike = alike && problem_of(some).empty();
  return alike ? "" : problem_of(all);
}

std::string problem_of(const holder& one, const holder& first) {
  if (auto problem = problem_of(*one.held); !problem.empty()) return to_string(one.part) + ": " + problem;
  if (one.held->type != first.held->type || one.held->whole != first.held->whole)
    return described(*first.held) + " of " + to_string(first.part) + " is " + described(*one.held) + " in " +
           to_string(one.part);
  if (one.held->replica && *one.held->replica != one.part.cell.replica)
    return to_string(one.part) + " holds " + one.held->name + " of replica " +
           std::to_string(*one.held->replica);
  return {};
}

}  // namespace

std::string cover_problem(const std::vector<part_contents>& parts) {
  std::map<std::string_view, holder> first;
  std::map<std::tuple<std::string_view, int, int>, holders> groups;  // by name, replica and stage
  for (const auto& [part, tensors] : parts)
    for (const auto& held : tensors) {
      holder one{part, &held};
      auto [known, is_first] = first.emplace(held.name, one);
      if (auto problem = problem_of(one, known->second); !problem.empty()) return problem;
      groups[{held.name, part.cell.replica, part.cell.stage}].push_back(one);
    }
  for (const auto& [key, all] : groups)
    if (auto problem = problem_of_stage(all); !problem.empty()) return problem;
  return {};
}

}  // namespace troupe::layout
