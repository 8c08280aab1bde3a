#include "troupe/collective/libraries/gloo/gloo_backend.hpp"

#include <gloo/allgather.h>
#include <gloo/common/error.h>

#include "troupe/collective/libraries/call_thread.hpp"

namespace troupe::collective {
namespace {

// gloo's collectives use slots of which the highest byte is not 0.
constexpr std::uint64_t message_slot = 1;

}  // namespace

gloo_backend::gloo_backend(group_description group, store& keys, std::shared_ptr<gloo_mesh> mesh)
    : library_backend(std::move(group), keys), mesh_(std::move(mesh)), context_(mesh_) {}

gloo_backend::~gloo_backend() {
  for (auto& [key, thread] : threads_) thread.wait_until_idle();
}

call_thread& gloo_backend::thread_for(const collective_operation& what) {
  auto kind = what.peer >= 0 ? what.signature.kind : collective_kind::barrier;
  return threads_[{kind, what.peer}];
}

algorithm gloo_backend::run(const collective_operation& what, std::uint64_t sequence) {
  if (what.peer < 0) enter(what, sequence);
  auto running =
      thread_for(what).start([this, &what, sequence] { carry_out(what, sequence); }, [this] { wake(); });
  co_await until([&] { return has_ended(*running, what, sequence); });
  if (what.peer < 0) leave();
}

bool gloo_backend::has_ended(const call_thread::blocking_call& given, const collective_operation& what,
                             std::uint64_t sequence) {
  if (!given.ended) return false;
  try {
    if (given.error) std::rethrow_exception(given.error);
  } catch (const ::gloo::Exception& failure) {
    fail(failure.what(), what, sequence);
  }
  return true;
}

void gloo_backend::carry_out(const collective_operation& what, std::uint64_t sequence) {
  if (what.signature.kind == collective_kind::send) return send(what);
  if (what.signature.kind == collective_kind::receive) return receive(what, sequence);
  agree(what, sequence);
  if (what.signature.count == 0 && what.signature.kind != collective_kind::barrier) return;
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return gloo_calls::all_reduce(context_, what);
    case collective_kind::reduce_scatter:
      return gloo_calls::reduce_scatter(context_, what);
    case collective_kind::all_gather:
      return gloo_calls::all_gather(context_, what);
    case collective_kind::broadcast:
      return gloo_calls::broadcast(context_, what);
    case collective_kind::reduce:
      return gloo_calls::reduce(context_, what);
    case collective_kind::gather:
      return gloo_calls::gather(context_, what);
    case collective_kind::scatter:
      return gloo_calls::scatter(context_, what);
    case collective_kind::all_to_all:
      return gloo_calls::all_to_all(context_, what);
    case collective_kind::barrier:  // agree() has synchronised all members
    case collective_kind::send:
    case collective_kind::receive:
      return;
  }
}

/// gloo ends the process when members pass different sizes, so all members compare their signatures first.
void gloo_backend::agree(const collective_operation& what, std::uint64_t sequence) {
  std::vector<call_signature> signatures(static_cast<std::size_t>(context_->size));
  auto own = what.signature;
  ::gloo::AllgatherOptions options(context_);
  options.setInput(reinterpret_cast<std::uint8_t*>(&own), sizeof own);
  options.setOutput(reinterpret_cast<std::uint8_t*>(signatures.data()), signatures.size() * sizeof own);
  ::gloo::allgather(options);
  require_agreement(signatures, sequence);
}

void gloo_backend::send(const collective_operation& what) {
  auto signature = what.signature;
  auto head = context_->createUnboundBuffer(&signature, sizeof signature);
  head->send(what.peer, message_slot);
  head->waitSend();
  if (what.signature.count == 0) return;
  auto input = what.input;
  auto elements = context_->createUnboundBuffer(input.bytes().data(), input.size_bytes());
  elements->send(what.peer, message_slot);
  elements->waitSend();
}

void gloo_backend::receive(const collective_operation& what, std::uint64_t sequence) {
  call_signature signature;
  auto head = context_->createUnboundBuffer(&signature, sizeof signature);
  head->recv(what.peer, message_slot);
  head->waitRecv();
  require_message(signature, what, sequence);
  if (what.signature.count == 0) return;
  auto output = what.output;
  auto elements = context_->createUnboundBuffer(output.bytes().data(), output.size_bytes());
  elements->recv(what.peer, message_slot);
  elements->waitRecv();
}

void gloo_backend::close(const collective_error&) noexcept {
  broken_pipe_guard guard;
  mesh_->close();
  for (auto& [key, thread] : threads_) thread.wait_until_idle();
}

}  // namespace troupe::collective
