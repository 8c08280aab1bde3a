#include "troupe/collective/group/group_builder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/hash/fnv1a.hpp"

namespace troupe::collective {
namespace {

constexpr std::size_t max_listed = 16;
/// After a group has lost a member. The membership notices a process that has ended within milliseconds, one
/// that hangs by its heartbeats. A connection may also break without a loss, and then no fence comes.
constexpr std::chrono::milliseconds longest_wait_for_fence{3000};
/// After a call has waited for a member for too long: by then a member that is stopped has sent no heartbeats
/// for that time. One that is late only is not lost, and then no fence comes.
constexpr std::chrono::milliseconds longest_wait_for_stopped{1500};

std::string name_in(std::uint64_t generation, const std::string& name) {
  return generation == process_table::first_generation ? name : std::to_string(generation) + '/' + name;
}

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

template <class Number>
std::string hash_text(const std::vector<Number>& numbers) {
  fnv1a hash;
  for (auto number : numbers) hash.add(static_cast<std::uint64_t>(number));
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

/// A group with a lost member names it, and so does one without: both end with their generation.
collective_error ended(const std::string& group, const groups_end& why) {
  if (why.is_job_end)
    return {
        collective_failure::cancelled, group, 0, {}, "group " + group + " ends with the job: " + why.cause};
  return {why.lost.empty() ? collective_failure::cancelled : collective_failure::lost_member, group, 0,
          why.lost,
          "group " + group + " ends with its generation: " + why.cause +
              ". Make a new group, with or without the successors of lost members"};
}

}  // namespace

struct group_builder::built_group {
  built_group(group_description wanted, process_table& members, store& all_keys, std::function<void()> check)
      : description(std::move(wanted)), keys(all_keys, [this, &members, check = std::move(check)] {
          if (check) check();
          if (auto why = members.end_of(description.generation)) throw ended(description.name, *why);
          for (std::size_t i = 0; i < description.ranks.size(); ++i)
            if (auto cause = members.loss_of(description.ranks[i], description.incarnations[i]))
              throw ended(description.name,
                          {.lost = {description.ranks[i]},
                           .cause = "rank " + to_string(description.ranks[i]) + " was lost: " + *cause});
        }) {}

  group_description description;
  checked_store keys;
  std::unique_ptr<communicator> group;
  bool was_waited_for = false;  ///< a fence after its failure; guarded as building is
};

group_builder::group_builder(world_rank rank, process_table& members, store& keys, communicator_maker make)
    : rank_(rank), members_(members), keys_(keys), make_(std::move(make)) {
  members_.set_listener([this](const groups_end& why) { on_end(why); });
}

group_builder::~group_builder() { members_.set_listener({}); }

std::shared_ptr<communicator> group_builder::build(const std::string& name,
                                                   const std::vector<world_rank>& ranks,
                                                   const communicator_options& options) {
  std::lock_guard lock(building_);
  wait_for_fence_of_lost_members(options.timeout);
  std::uint64_t generation;
  std::vector<std::uint32_t> incarnations;
  do {
    generation = members_.generation();
    incarnations = wait_for_members(name, ranks, options.timeout);
  } while (members_.generation() != generation);
  auto unique_name = name_in(generation, name);
  if (auto count = ++counts_[unique_name]; count > 1) unique_name += '#' + std::to_string(count);
  group_description description{unique_name, ranks};
  description.incarnations = std::move(incarnations);
  description.generation = generation;
  return build_group(std::move(description), options, nullptr);
}

std::shared_ptr<communicator> group_builder::build_in(std::uint64_t generation, const std::string& name,
                                                      const std::vector<world_rank>& ranks,
                                                      const communicator_options& options,
                                                      std::function<void()> check) {
  auto incarnations = members_.wait_for(ranks, std::chrono::milliseconds(0));
  if (auto why = members_.end_of(generation)) throw ended(name, *why);
  if (!incarnations) throw ended(name, {.lost = members_.missing(ranks), .cause = "a member was lost"});
  group_description description{name_in(generation, name), ranks};
  description.incarnations = std::move(*incarnations);
  description.generation = generation;
  return build_group(std::move(description), options, std::move(check));
}

std::shared_ptr<communicator> group_builder::build_group(group_description description,
                                                         const communicator_options& options,
                                                         std::function<void()> check) {
  description.member = description.member_of(rank_).value();
  auto made = std::make_shared<built_group>(std::move(description), members_, keys_, std::move(check));
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

/// A group may notice a loss before the membership does. That process must not be waited for again, and a
/// group that began now would end at the fence, which other members may have seen already. The same holds for
/// a call that timed out because a member is stopped; that one is no suspect yet, since it may be late only.
void group_builder::wait_for_fence_of_lost_members(std::chrono::milliseconds timeout) {
  auto generation = members_.generation();
  std::chrono::milliseconds wait{0};
  for (const auto& known : living_groups()) {
    auto failure = known->group->failure();
    if (!failure || known->was_waited_for || known->description.generation != generation)
      continue;  // else the fence has said who is lost
    try {
      std::rethrow_exception(failure);
    } catch (const collective_error& error) {
      bool is_loss = error.kind() == collective_failure::lost_member;
      if (!is_loss && (error.kind() != collective_failure::timed_out || error.ranks().empty())) continue;
      auto longest = is_loss ? longest_wait_for_fence : longest_wait_for_stopped;
      known->was_waited_for = timeout >= longest;
      wait = std::max(wait, longest);
      if (!is_loss) continue;
      for (auto rank : error.ranks())
        if (auto member = known->description.member_of(rank))
          members_.suspect(rank, known->description.incarnation_of(*member));
    } catch (const std::exception&) {
      continue;  // no loss
    }
  }
  if (wait.count() == 0) return;
  members_.wait_for_end_of(generation, std::min(timeout, wait));
  if (timeout >= longest_wait_for_fence && !members_.end_of(generation)) members_.clear_suspicions();
}

std::vector<std::shared_ptr<group_builder::built_group>> group_builder::living_groups() {
  std::vector<std::shared_ptr<built_group>> living;
  std::lock_guard lock(listing_);
  for (const auto& each : groups_)
    if (auto known = each.lock()) living.push_back(std::move(known));
  return living;
}

/// A group of the next generation may have been formed before this is called at the fence.
void group_builder::on_end(const groups_end& why) {
  for (const auto& each : living_groups())
    if (why.is_job_end || each->description.generation < why.generation)
      each->group->abort(ended(each->description.name, why));
}

std::string group_builder::name_of(const std::vector<world_rank>& ranks) {
  if (ranks.size() <= max_listed) return '{' + listed(ranks, ',') + '}';
  return '{' + to_string(ranks.front()) + ",..," + to_string(ranks.back()) + " of " +
         std::to_string(ranks.size()) + ' ' + hash_text(ranks) + '}';
}

}  // namespace troupe::collective
