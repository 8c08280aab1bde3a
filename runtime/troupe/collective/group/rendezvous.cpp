#include "troupe/collective/group/rendezvous.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::collective {

namespace {

using namespace std::chrono_literals;

constexpr auto poll_interval = 100ms;

}  // namespace

rendezvous::rendezvous(const group_description& group, store& keys, std::chrono::milliseconds timeout)
    : group_(group), keys_(keys), timeout_(timeout), deadline_(std::chrono::steady_clock::now() + timeout) {}

std::string rendezvous::key(const std::string& name, member_index member) const {
  return "group/" + group_.key() + '/' + name + '/' + std::to_string(member);
}

void rendezvous::put(const std::string& name, const std::string& value) {
  keys_.put(key(name, member()), std::as_bytes(std::span(value)));
}

std::optional<std::string> rendezvous::find(const std::string& key, std::chrono::milliseconds timeout) {
  auto bytes = keys_.get(key, timeout);
  if (!bytes) return {};
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

std::string rendezvous::get(const std::string& name, member_index from) {
  return wait_for(key(name, from), name, from);
}

std::string rendezvous::wait_for(const std::string& key, const std::string& name, member_index from) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (auto text = find(key, std::clamp<std::chrono::milliseconds>(left, 0ms, poll_interval))) return *text;
    throw_if_ended(name);
    throw_if_late(name, from);
  }
}

void rendezvous::check(const std::string& name, member_index from) {
  if (auto obstacle = find(key("obstacle", from), 0ms)) throw_obstacle(*obstacle);
  throw_if_ended(name);
  throw_if_late(name, from);
}

void rendezvous::fail(const std::string& obstacle) {
  put("obstacle", obstacle);
  throw_obstacle(obstacle);
}

void rendezvous::throw_obstacle(const std::string& obstacle) const {
  throw collective_error(collective_failure::transport, group_.name, 0, {},
                         "group " + group_.name + " cannot be made: " + obstacle);
}

void rendezvous::throw_if_late(const std::string& name, member_index from) const {
  if (std::chrono::steady_clock::now() >= deadline_) throw_late(name, from);
}

std::optional<std::string> rendezvous::find_now(const std::string& name, member_index from) {
  return find(key(name, from), 0ms);
}

void rendezvous::throw_late(const std::string& name, member_index from) const {
  auto rank = rank_of(from);
  throw collective_error(collective_failure::timed_out, group_.name, 0, {rank},
                         "rank " + to_string(rank) + " did not come to make group " + group_.name +
                             " within " + std::to_string(timeout_.count()) + " ms (its " + name +
                             " is missing)");
}

void rendezvous::throw_if_ended(const std::string& name) const {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    auto rank = rank_of(static_cast<int>(i));
    throw collective_error(collective_failure::lost_member, group_.name, 0, {rank},
                           "rank " + to_string(rank) + " ended while group " + group_.name +
                               " was made (before the " + name + " of all was there)");
  }
}

std::vector<std::string> rendezvous::all_gather(const std::string& name, const std::string& own) {
  put(name, own);
  std::vector<std::string> gathered;
  for (int i = 0; i < group_.size(); ++i) gathered.push_back(i == member() ? own : get(name, i));
  return gathered;
}

namespace {

std::string namespace_number(const std::string& path) {
  struct stat found {};
  check_posix(::stat(path.c_str(), &found), "look at " + path);
  return std::to_string(found.st_ino);
}

}  // namespace

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) throw std::runtime_error("cannot read /proc/sys/kernel/random/boot_id: mount /proc");
  // Process ids, by which processes watch each other, belong to the PID namespace, and whether two are of one
  // user is only known within a user namespace.
  std::string name = boot;
  for (const char* kind : {"net", "pid", "user"})
    name += '/' + namespace_number(std::string("/proc/self/ns/") + kind);
  return name + '/' + std::to_string(::geteuid());
}

std::string to_string(const member_info& info) {
  return info.host + ' ' + std::to_string(info.process) + ' ' + info.address + ' ' + info.sizes;
}

member_info parse_member_info(const std::string& text) {
  member_info info;
  if (!(std::istringstream(text) >> info.host >> info.process >> info.address >> info.sizes))
    throw std::runtime_error("[member info] expected host, process, address and sizes, got \"" + text + '"');
  return info;
}

std::string known_processes::key_of(const rendezvous& point, const std::string& name, member_index member) {
  return name + '/' + to_string(point.rank_of(member)) + '/' +
         std::to_string(point.group().incarnation_of(member));
}

std::optional<std::string> known_processes::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = known_.find(key);
  if (found == known_.end()) return {};
  return found->second;
}

void known_processes::remember(const std::string& key, const std::string& text) {
  std::lock_guard lock(mutex_);
  known_.insert_or_assign(key, text);
}

/// Another thread may have read a newer one meanwhile.
std::string known_processes::remember_first(const std::string& key, const std::string& text) {
  std::lock_guard lock(mutex_);
  return known_.try_emplace(key, text).first->second;
}

std::string known_processes::tell(rendezvous& point, const std::string& key,
                                  const std::function<std::string()>& own) {
  std::lock_guard lock(telling_);
  auto text = own();
  if (find(key) != text) {
    point.keys_.put(key, std::as_bytes(std::span(text)));
    remember(key, text);
  }
  return text;
}

std::vector<std::string> known_processes::texts_of(rendezvous& point, const std::string& name,
                                                   const std::function<std::string()>& own) {
  std::vector<std::string> texts(static_cast<std::size_t>(point.group().size()));
  texts[static_cast<std::size_t>(point.member())] = tell(point, key_of(point, name, point.member()), own);
  for (int i = 0; i < point.group().size(); ++i) {
    if (i == point.member()) continue;
    auto key = key_of(point, name, i);
    auto known = find(key);
    texts[static_cast<std::size_t>(i)] = known ? *known : remember_first(key, point.wait_for(key, name, i));
  }
  return texts;
}

std::string known_processes::read_again(rendezvous& point, const std::string& name, member_index from) {
  auto key = key_of(point, name, from);
  if (auto text = point.find(key, 0ms)) remember(key, *text);
  return find(key).value();
}

}  // namespace troupe::collective
