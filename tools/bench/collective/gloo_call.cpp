#include "bench/collective/gloo_call.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "troupe/collective/libraries/gloo/gloo_mesh.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

using context = std::shared_ptr<::gloo::Context>;

std::shared_ptr<::gloo::transport::Device> loopback() {
  ::gloo::transport::tcp::attr where;
  where.iface = "lo";
  return ::gloo::transport::tcp::CreateDevice(where);
}

void all_reduce(const context& mesh, std::span<float> x) {
  ::gloo::AllreduceOptions options(mesh);
  options.setOutput(x.data(), x.size());
  options.setReduceFunction([](void* result, const void* a, const void* b, std::size_t count) {
    ::gloo::sum<float>(result, a, b, count);
  });
  ::gloo::allreduce(options);
}

void all_gather(const context& mesh, std::span<float> x) {
  ::gloo::AllgatherOptions options(mesh);
  options.setOutput(x.data(), x.size());
  ::gloo::allgather(options);
}

void ping_pong(const context& mesh, std::span<float> x) {
  auto buffer = mesh->createUnboundBuffer(x.data(), x.size_bytes());
  for (int from = 0; from < 2; ++from) {
    constexpr std::uint64_t slot = 1;
    if (mesh->rank == from) {
      buffer->send(1 - from, slot);
      buffer->waitSend();
    } else {
      buffer->recv(from, slot);
      buffer->waitRecv();
    }
  }
}

using function = void (*)(const context&, std::span<float>);

function call_named(const std::string& operation) {
  if (operation == "all_reduce") return all_reduce;
  if (operation == "all_gather") return all_gather;
  if (operation == "p2p") return ping_pong;
  throw bad_input("gloo has no " + operation + " like this");
}

}  // namespace

std::function<void(tensor&)> make_gloo_call(const group_description& group, collective::store& keys,
                                            const std::string& operation) {
  auto call = call_named(operation);
  context mesh = std::make_shared<collective::gloo_mesh>(group, keys, loopback(), std::chrono::minutes(5));
  return [call, mesh](tensor& x) { call(mesh, x.values<float>()); };
}

}  // namespace troupe::bench
