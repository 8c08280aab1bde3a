#include "troupe/collective/gloo/gloo_mesh.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>

#include <algorithm>
#include <future>

#include "troupe/collective/collective_error.hpp"

namespace troupe {

gloo_mesh::gloo_mesh(const group_description& group, store& keys,
                     std::shared_ptr<::gloo::transport::Device> device, std::chrono::milliseconds timeout)
    : Context(group.member, group.size()), group_(group) {
  auto until = std::chrono::steady_clock::now() + timeout;
  device_ = std::move(device);
  auto connections = device_->createContext(rank, size);
  connections->setTimeout(timeout);  // of connecting
  connections_ = std::make_shared<breakable_context>(std::move(connections));
  transportContext_ = connections_;
  keys.put(key_of(rank), listen());
  for (int member = 0; member < size; ++member)
    if (member != rank) connect(member, wait_for(member, keys, until), keys);
}

gloo_mesh::addresses gloo_mesh::listen() {
  addresses all;
  for (int member = 0; member < size; ++member) {
    if (member == rank) continue;
    auto own = transportContext_->createPair(member)->address().bytes();
    auto bytes = std::as_bytes(std::span(own));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

gloo_mesh::addresses gloo_mesh::wait_for(int member, store& keys, deadline until) const {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  if (auto found = keys.get(key_of(member), std::max(left, std::chrono::milliseconds(0)))) return *found;
  throw collective_error(collective_failure::timed_out, group_.name, 0, {rank_of(member)},
                         "group " + group_.name + " cannot begin over gloo: nothing came from rank " +
                             std::to_string(rank_of(member)));
}

std::vector<char> gloo_mesh::address_for_me(int member, const addresses& of_all) const {
  auto length = static_cast<std::ptrdiff_t>(of_all.size()) / (size - 1);
  const auto* first =
      reinterpret_cast<const char*>(of_all.data()) + length * (rank > member ? rank - 1 : rank);
  return {first, first + length};
}

/// gloo waits until the other side has come or the time is over, and does not notice that it is gone for
/// good; closing the pair ends that.
void gloo_mesh::connect(int member, const addresses& of_all, store& keys) {
  constexpr auto interval = std::chrono::milliseconds(100);
  auto& pair = *transportContext_->getPair(member);
  auto connecting = std::async(std::launch::async,
                               [&pair, address = address_for_me(member, of_all)] { pair.connect(address); });
  try {
    while (connecting.wait_for(interval) != std::future_status::ready) keys.check();
    connecting.get();
  } catch (const ::gloo::Exception& failure) {
    throw collective_error(collective_failure::transport, group_.name, 0, {rank_of(member)},
                           "group " + group_.name + " cannot begin over gloo: no connection to rank " +
                               std::to_string(rank_of(member)) + ": " + failure.what());
  } catch (...) {
    pair.close();
    throw;
  }
}

std::string gloo_mesh::key_of(int member) const {
  auto key = group_.name + "/gloo";
  for (int each : group_.ranks) key += '/' + std::to_string(each);
  return key + "/of/" + std::to_string(member);
}

}  // namespace troupe
