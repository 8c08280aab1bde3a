// agent_server: the key-value store's messages.
#include "troupe/cluster/agent_server.hpp"

namespace troupe::cluster {

bool agent_server::on_store_message(agent_connection& from, const agent_wire::client_message& message) {
  using namespace agent_wire;
  if (auto* put = std::get_if<agent_wire::put_value>(&message)) return on_put(from, *put), true;
  if (auto* get = std::get_if<agent_wire::get_value>(&message)) return on_get(from, *get), true;
  if (auto* given_up = std::get_if<agent_wire::forget_request>(&message))
    return keys_.forget({from.peer->rank, from.peer->incarnation, given_up->request}), true;
  return false;
}

void agent_server::on_put(agent_connection& from, const agent_wire::put_value& message) {
  auto refusal = keys_.put(message.key, message.value);
  from.send(agent_wire::store_reply{message.request, refusal, {}});
  if (refusal.empty()) answer_waiting(message.key);
}

void agent_server::on_get(agent_connection& from, const agent_wire::get_value& message) {
  if (auto* value = keys_.find(message.key))
    return from.send(agent_wire::store_reply{message.request, {}, *value});
  auto refusal = keys_.wait(message.key, {from.peer->rank, from.peer->incarnation, message.request});
  if (!refusal.empty()) from.send(agent_wire::store_reply{message.request, refusal, {}});
}

void agent_server::answer_waiting(const std::string& key) {
  for (const auto& waiter : keys_.take_waiters(key))
    for (auto& connection : connections_)
      if (is_member(connection) && connection.peer->rank == waiter.rank &&
          connection.peer->incarnation == waiter.incarnation)
        connection.send(agent_wire::store_reply{waiter.request, {}, *keys_.find(key)});
}

}  // namespace troupe::cluster
