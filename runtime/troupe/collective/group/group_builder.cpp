#include "troupe/collective/group/group_builder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "troupe/collective/group/store.hpp"

namespace troupe {
namespace {

constexpr std::size_t max_listed = 16;

template <class Number>
std::string listed(const std::vector<Number>& numbers, char between) {
  using std::to_string;
  std::string text;
  for (auto number : numbers) {
    if (!text.empty()) text += between;
    text += to_string(number);
  }
  return text;
}

/// FNV-1a.
template <class Number>
std::string hash_text(const std::vector<Number>& numbers) {
  std::uint64_t hash = 14695981039346656037u;
  for (auto number : numbers) hash = (hash ^ static_cast<std::uint64_t>(number)) * 1099511628211u;
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

/// Empty if all processes are the first ones of their ranks.
std::string incarnations_text(const std::vector<std::uint32_t>& incarnations) {
  if (std::ranges::count(incarnations, 0u) == std::ssize(incarnations)) return {};
  return '@' + (incarnations.size() <= max_listed ? listed(incarnations, '.') : hash_text(incarnations));
}

collective_error lost(const std::string& group, world_rank rank, const std::string& cause) {
  return {collective_failure::lost_member,
          group,
          0,
          {rank},
          "rank " + to_string(rank) + " of group " + group + " was lost: " + cause +
              ". Make a new group, with its successor or without it"};
}

}  // namespace

struct group_builder::built_group {
  built_group(group_description wanted, process_table& members, store& all_keys)
      : description(std::move(wanted)), keys(all_keys, [this, &members] {
          for (std::size_t i = 0; i < description.ranks.size(); ++i)
            if (auto cause = members.loss_of(description.ranks[i], description.incarnations[i]))
              throw lost(description.name, description.ranks[i], *cause);
        }) {}

  group_description description;
  checked_store keys;
  std::unique_ptr<communicator> group;
};

group_builder::group_builder(world_rank rank, process_table& members, store& keys, communicator_maker make)
    : rank_(rank), members_(members), keys_(keys), make_(std::move(make)) {
  members_.set_listener(
      [this](std::optional<world_rank> lost_rank, const std::string& cause) { on_loss(lost_rank, cause); });
}

group_builder::~group_builder() { members_.set_listener({}); }

std::shared_ptr<communicator> group_builder::build(const std::string& name,
                                                   const std::vector<world_rank>& ranks,
                                                   const communicator_options& options) {
  std::lock_guard lock(building_);
  suspect_lost_members();
  auto incarnations = wait_for_members(name, ranks, options.timeout);
  auto unique_name = name + incarnations_text(incarnations);
  if (auto count = ++counts_[unique_name]; count > 1) unique_name += '#' + std::to_string(count);
  group_description description{unique_name, ranks};
  description.member = description.member_of(rank_).value();
  description.incarnations = std::move(incarnations);
  auto made = std::make_shared<built_group>(std::move(description), members_, keys_);
  made->group = make_(made->description, made->keys, options);
  {
    std::lock_guard listing(listing_);
    std::erase_if(groups_, [](const auto& each) { return each.expired(); });
    groups_.push_back(made);
  }
  made->keys.check();  // of what happened before it was listed
  return {made, made->group.get()};
}

std::vector<std::uint32_t> group_builder::wait_for_members(const std::string& name,
                                                           const std::vector<world_rank>& ranks,
                                                           std::chrono::milliseconds timeout) {
  if (auto incarnations = members_.wait_for(ranks, timeout)) return *incarnations;
  auto missing = members_.missing(ranks);
  throw collective_error(collective_failure::timed_out, name, 0, missing,
                         "group " + name + " could not begin within " + std::to_string(timeout.count()) +
                             " ms: no process of rank " + listed(missing, ',') +
                             " is in the job. Wait for it longer, or leave it out");
}

/// A group may notice a loss before the process table does. That process must not be waited for again.
void group_builder::suspect_lost_members() {
  std::lock_guard lock(listing_);
  for (const auto& each : groups_) {
    auto known = each.lock();
    auto failure = known ? known->group->failure() : nullptr;
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const collective_error& error) {
      if (error.kind() != collective_failure::lost_member) continue;
      for (auto rank : error.ranks())
        if (auto member = known->description.member_of(rank))
          members_.suspect(rank, known->description.incarnation_of(*member));
    } catch (const std::exception&) {
      continue;  // no loss
    }
  }
}

void group_builder::on_loss(std::optional<world_rank> rank, const std::string& cause) {
  std::vector<std::shared_ptr<built_group>> living;
  {
    std::lock_guard lock(listing_);
    for (const auto& each : groups_)
      if (auto known = each.lock()) living.push_back(std::move(known));
  }
  for (const auto& each : living) {
    const auto& group = each->description;
    if (!rank)
      each->group->abort(collective_error(collective_failure::cancelled, group.name, 0, {},
                                          "group " + group.name + " ends with the job: " + cause));
    else if (group.member_of(*rank) && *rank != rank_)
      each->group->abort(lost(group.name, *rank, cause));
  }
}

std::string group_builder::name_of(const std::vector<world_rank>& ranks) {
  if (ranks.size() <= max_listed) return '{' + listed(ranks, ',') + '}';
  return '{' + to_string(ranks.front()) + ",..," + to_string(ranks.back()) + " of " +
         std::to_string(ranks.size()) + ' ' + hash_text(ranks) + '}';
}

}  // namespace troupe
