#include "troupe/collective/shm/process_backend.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/hash/fnv1a.hpp"
#include "troupe/posix/futex.hpp"

namespace troupe::collective {

namespace {

// A socket holds some hundred messages, and the receiver may not have read them for a while.
constexpr int locations_between_exchanges = 16;

// What other members cannot read in place goes inline.
static_assert(shared_memory::largest_private_bytes <= shm::control_block::max_inline_bytes);

}  // namespace

process_memory::process_memory(shared_memory::shared_heap& heap,
                               std::vector<std::shared_ptr<peer_process>> peers)
    : heap_(heap), peers_(std::move(peers)), mapped_(peers_.size()) {}

shm::buffer_location process_memory::locate(std::span<const std::byte> elements) {
  if (++num_located_ % locations_between_exchanges == 0) exchange_released();
  auto found = heap_.locate(elements);
  if (!found) return {};
  for (const auto& peer : peers_)
    if (peer) peer->send_segment(*found->segment);
  return {found->segment->id, found->offset};
}

std::byte* process_memory::resolve(int member, const shm::buffer_location& location) {
  auto& known = mapped_[static_cast<std::size_t>(member)];
  auto at = known.find(location.segment);
  if (at == known.end()) {
    auto segment = peers_[static_cast<std::size_t>(member)]->find_segment(location.segment);
    if (!segment)
      throw std::runtime_error("segment " + std::to_string(location.segment) + " of member " +
                               std::to_string(member) + " was named but not sent");
    at = known.emplace(location.segment, std::move(segment)).first;
  }
  if (location.offset >= at->second->size_bytes())
    throw std::runtime_error("member " + std::to_string(member) + " named a place outside its segment");
  return at->second->first() + location.offset;
}

// The others cannot access the fresh pages, so there is no access to wait for.
void process_memory::revoke(std::span<const std::byte> elements, const shm::control_block&) {
  heap_.revoke(elements);
}

/// Tells the peers which segments were freed here, and unmaps those that were freed there. Only while no
/// algorithm uses an address from resolve(): the thread that calls locate() is the only one of the group.
void process_memory::exchange_released() {
  auto released = heap_.take_released();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    peers_[i]->release_segments(released);
    peers_[i]->receive_segments();
    // The last reference is in this map: the owner has freed the segment.
    std::erase_if(mapped_[i], [](const auto& each) { return each.second.use_count() == 1; });
  }
}

std::vector<int> engine_events_of(const std::vector<std::shared_ptr<peer_process>>& peers,
                                  const progress_engine& own) {
  std::vector<int> events;
  for (const auto& each : peers) events.push_back(each ? each->engine_event() : own.event());
  return events;
}

process_backend::process_backend(group_description group, ucx_group_resources& resources,
                                 std::vector<std::shared_ptr<peer_process>> peers,
                                 std::unique_ptr<group_area> area)
    : shm::shm_backend(group,
                       shm::control_block(area->control_block(), group.size(), group.member,
                                          engine_events_of(peers, *resources.engine)),
                       std::make_unique<process_memory>(resources.heap, peers)),
      peers_(std::move(peers)),
      seen_ended_(peers_.size()),
      area_(std::move(area)),
      watch_(resources.connector, [this] { wake(); }) {}

// A process may end normally after its part of the last call. What it wrote before is in memory, but this
// member may not have read it yet. So after an end was seen, calls are advanced once more before it counts as
// a loss.
void process_backend::check_members() {
  shm::shm_backend::check_members();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    if (seen_ended_[i]) {
      throw_if_waiting_for(static_cast<int>(i));
    } else {
      seen_ended_[i] = true;
      wake();
    }
  }
}

namespace {

using peer_list = std::vector<std::shared_ptr<peer_process>>;

/// The members on this member's host, with this one.
std::vector<int> local_members_of(const rendezvous& point, const std::vector<member_info>& infos) {
  std::vector<int> found;
  const auto& own = infos[static_cast<std::size_t>(point.member())];
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].is_on_host_of(own)) found.push_back(static_cast<int>(i));
  return found;
}

/// Throws if the membership, within a second, says that the member is lost: that comes a little later than
/// what its connections tell.
void check_for_loss(rendezvous& point, member_index member) {
  using clock = std::chrono::steady_clock;
  for (auto end = clock::now() + std::chrono::seconds(1); clock::now() < end;) {
    point.check("connection", member);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Connections to the local members, by member. Empty if one cannot be reached, with the reason in
/// `obstacle`.
peer_list connect_to_all(const std::vector<int>& local_members, const std::vector<member_info>& infos,
                         rendezvous& point, ucx_group_resources& resources, std::string& obstacle) {
  peer_list peers(infos.size());
  for (int member : local_members) {
    if (member == point.member()) continue;
    auto i = static_cast<std::size_t>(member);
    try {
      peers[i] = resources.connector.connection_to(infos[i].process, infos[i].address, point.half_time(),
                                                   [&] { point.check("connection", member); });
    } catch (const collective_error&) {
      throw;
    } catch (const std::runtime_error& error) {
      check_for_loss(point, member);
      obstacle = "members of one host do not share memory (rank " + to_string(point.rank_of(member)) + ": " +
                 error.what() + ')';
      return {};
    }
  }
  return peers;
}

/// Of the name and the ranks, which together no other group has.
std::uint64_t number_of(const group_description& group) {
  fnv1a hash;
  hash.add(group.name);
  for (auto rank : group.ranks) hash.add(256 + static_cast<std::uint64_t>(rank));
  return hash.value() | 1;
}

/// Waits until `find_missing` returns no member, which others change together with `changes`. At first
/// without sleeping: members make groups at the same time.
template <class FindMissing>
void wait_for_members(rendezvous& point, std::atomic<std::uint32_t>& changes, const std::string& name,
                      FindMissing find_missing) {
  using clock = std::chrono::steady_clock;
  constexpr auto longest_yielding = std::chrono::microseconds(100);
  constexpr auto check_interval = std::chrono::milliseconds(100);
  auto begin = clock::now(), next_check = begin + check_interval;
  while (true) {
    auto known = changes.load();
    auto missing = find_missing();
    if (!missing) return;
    auto now = clock::now();
    if (now >= next_check || point.time_left().count() == 0) {
      point.check(name, *missing);
      next_check = now + check_interval;
    }
    if (now - begin < longest_yielding)
      std::this_thread::yield();
    else
      posix::futex_wait(
          changes, known,
          std::chrono::ceil<std::chrono::microseconds>(std::min(next_check - now, point.time_left())));
  }
}

[[noreturn]] void throw_given_up(const rendezvous& point, member_index member) {
  auto rank = point.rank_of(member);
  throw collective_error(collective_failure::timed_out, point.group().name, 0, {rank},
                         "rank " + to_string(rank) + " gave up making group " + point.group().name +
                             " before all of its members had come: make a new group on all of them");
}

/// The first local member adds the group to its group_memory, where the others find it. Returns when all are
/// there.
std::unique_ptr<group_area> meet(rendezvous& point, const host_members& all, const std::vector<int>& indices,
                                 group_memory& own) {
  auto number = number_of(point.group());
  auto num_members = all.members.size();
  int member = all.members.member;
  std::unique_ptr<group_area> area;
  if (member == 0) {
    area = own.add(number, all.peers, member);
  } else {
    const auto& first = all.peers.front()->groups();
    wait_for_members(point, first.changes(), "group", [&]() -> std::optional<member_index> {
      area = first.find(number, num_members, member);
      return area ? std::optional<member_index>() : indices.front();
    });
  }
  struct removal {
    group_memory* from;
    std::uint64_t number;
    ~removal() {
      if (from) from->remove(number);
    }
  } when_all_have_come{member == 0 ? &own : nullptr, number};
  area->arrive();
  wait_for_members(point, area->changes(), "arrival", [&]() -> std::optional<member_index> {
    for (int i = 0; i < num_members; ++i) {
      member_index each = indices[static_cast<std::size_t>(i)];
      if (area->has_given_up(i)) throw_given_up(point, each);
      if (!area->has_arrived(i)) return each;
    }
    return {};
  });
  area->begin();
  return area;
}

}  // namespace

host_members connect_host_members(rendezvous& point, const std::vector<member_info>& infos,
                                  ucx_group_resources& resources) {
  auto local_members = local_members_of(point, infos);
  std::string obstacle;
  auto peers = connect_to_all(local_members, infos, point, resources, obstacle);
  if (!obstacle.empty()) point.fail(obstacle);
  point.watch(peers);
  host_members made{.members = {point.group().name, {}, 0}, .peers = {}, .area = {}};
  for (int member : local_members) {
    if (member == point.member()) made.members.member = made.members.size();
    made.members.ranks.push_back(point.rank_of(member));
    made.peers.push_back(peers[static_cast<std::size_t>(member)]);
  }
  made.area = meet(point, made, local_members, resources.groups);
  return made;
}

}  // namespace troupe::collective
