#include "troupe/collective/libraries/nccl/nccl_backend.hpp"

#include "troupe/error/device_lost.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe::collective {
namespace {

ncclDataType_t type_of(dtype type) {
  if (type == dtype::f32) return ncclFloat32;
  if (type == dtype::bf16) return ncclBfloat16;
  if (type == dtype::f16) return ncclFloat16;
  if (type == dtype::i32) return ncclInt32;
  return type == dtype::i64 ? ncclInt64 : ncclUint8;
}

/// The mean of one member is asked for as its sum: NCCL 2.28 leaves the last elements of such a mean out
/// where the result lies elsewhere than the input.
ncclRedOp_t op_of(reduce_op op, int num_members) {
  if (op == reduce_op::sum || num_members == 1) return ncclSum;
  if (op == reduce_op::mean) return ncclAvg;
  if (op == reduce_op::max) return ncclMax;
  return op == reduce_op::min ? ncclMin : ncclProd;
}

/// The arguments of one operation in NCCL's types.
struct arguments {
  const nccl_connection& on;
  const collective_operation& what;
  const std::byte* from = what.input.bytes().data();
  std::byte* to = tensor(what.output).bytes().data();
  ncclDataType_t type = type_of(what.signature.type);
  ncclRedOp_t op = op_of(what.signature.op, on.num_members());
  std::size_t count = static_cast<std::size_t>(what.signature.count);
  int root = what.signature.root;

  std::size_t part(int member) const {
    return static_cast<std::size_t>(what.parts[static_cast<std::size_t>(member)]);
  }
  std::size_t offset(int member) const {
    return static_cast<std::size_t>(part_begin(what, member)) * size_bytes(what.signature.type);
  }
};

/// NCCL calls between group_start and group_end, which run together. The group always ends, since an open one
/// would delay all later NCCL calls of this thread.
class grouped {
 public:
  grouped() { check(nccl().group_start()); }
  ~grouped() {
    if (!has_ended_) nccl().group_end();
  }
  grouped(const grouped&) = delete;
  grouped& operator=(const grouped&) = delete;

  void end() {
    has_ended_ = true;
    check(nccl().group_end());
  }

 private:
  bool has_ended_ = false;
};

void send(const arguments& given, const std::byte* from, std::size_t count, int to) {
  if (count > 0) check(nccl().send(from, count, given.type, to, given.on.communicator(), given.on.stream()));
}
void receive(const arguments& given, std::byte* to, std::size_t count, int from) {
  if (count > 0)
    check(nccl().receive(to, count, given.type, from, given.on.communicator(), given.on.stream()));
}

// NCCL has no unequal parts: one reduction for each member.
void reduce_scatter(const arguments& given) {
  auto own = given.part(given.on.member());
  if (given.what.signature.layout == 0)
    return check(nccl().reduce_scatter(given.from, given.to, own, given.type, given.op,
                                       given.on.communicator(), given.on.stream()));
  grouped calls;
  for (int i = 0; i < given.on.num_members(); ++i)
    if (given.part(i) > 0)
      check(nccl().reduce(given.from + given.offset(i), given.to, given.part(i), given.type, given.op, i,
                          given.on.communicator(), given.on.stream()));
  calls.end();
}

// NCCL has no unequal parts: one broadcast from each member.
void all_gather(const arguments& given) {
  if (given.what.signature.layout == 0)
    return check(nccl().all_gather(given.from, given.to, given.part(0), given.type, given.on.communicator(),
                                   given.on.stream()));
  grouped calls;
  for (int i = 0; i < given.on.num_members(); ++i)
    if (given.part(i) > 0)
      check(nccl().broadcast(i == given.on.member() ? given.from : given.to + given.offset(i),
                             given.to + given.offset(i), given.part(i), given.type, i,
                             given.on.communicator(), given.on.stream()));
  calls.end();
}

void gather(const arguments& given) {
  grouped calls;
  send(given, given.from, given.part(given.on.member()), given.root);
  if (given.on.member() == given.root)
    for (int i = 0; i < given.on.num_members(); ++i)
      receive(given, given.to + given.offset(i), given.part(i), i);
  calls.end();
}

void scatter(const arguments& given) {
  grouped calls;
  if (given.on.member() == given.root)
    for (int i = 0; i < given.on.num_members(); ++i)
      send(given, given.from + given.offset(i), given.part(i), i);
  receive(given, given.to, given.part(given.on.member()), given.root);
  calls.end();
}

void all_to_all(const arguments& given) {
  grouped calls;
  for (int i = 0; i < given.on.num_members(); ++i) {
    send(given, given.from + given.offset(i), given.part(i), i);
    receive(given, given.to + given.offset(i), given.part(i), i);
  }
  calls.end();
}

/// Issues a call on its connection, where it proceeds by itself. Throws nccl_error.
void issue_call(const nccl_connection& on, const collective_operation& what) {
  arguments given{on, what};
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return check(nccl().all_reduce(given.from, given.to, given.count, given.type, given.op,
                                     on.communicator(), on.stream()));
    case collective_kind::reduce_scatter:
      return reduce_scatter(given);
    case collective_kind::all_gather:
      return all_gather(given);
    case collective_kind::broadcast:
      return check(nccl().broadcast(given.from, given.to, given.count, given.type, given.root,
                                    on.communicator(), on.stream()));
    case collective_kind::reduce:
      return check(nccl().reduce(given.from, given.to, given.count, given.type, given.op, given.root,
                                 on.communicator(), on.stream()));
    case collective_kind::gather:
      return gather(given);
    case collective_kind::scatter:
      return scatter(given);
    case collective_kind::all_to_all:
      return all_to_all(given);
    case collective_kind::send:  // in a communicator of two, whose member 0 sends
      return send(given, given.from, given.count, 1);
    case collective_kind::receive:
      return receive(given, given.to, given.count, 0);
    case collective_kind::barrier:
      return;
  }
}

}  // namespace

nccl_backend::nccl_backend(group_description group, store& keys, std::shared_ptr<nccl_connections> on,
                           std::chrono::milliseconds finalize_timeout)
    : library_backend(std::move(group), keys),
      keys_(keys),
      on_(std::move(on)),
      finalize_timeout_(finalize_timeout) {
  barrier_.signature.kind = collective_kind::all_reduce;
  barrier_.signature.count = 1;
  barrier_.input = barrier_.output = tensor::zeros({1}, dtype::f32, device());
}

/// Connections are keyed by sender and receiver; that of the collectives by -1 and -1.
nccl_connection& nccl_backend::connection_for(const collective_operation& what) {
  bool sends = what.signature.kind == collective_kind::send;
  std::pair<int, int> between{-1, -1};
  if (what.peer >= 0)
    between = sends ? std::pair(group().member, what.peer) : std::pair(what.peer, group().member);
  auto found = connections_.find(between);
  if (found != connections_.end()) return found->second;
  auto key = "nccl/" + group().key() + "/from/" + std::to_string(between.first) + "/to/" +
             std::to_string(between.second);
  int size = what.peer >= 0 ? 2 : group().size();
  member_index member = what.peer < 0 ? group().member : member_index(sends ? 0 : 1);
  return connections_
      .try_emplace(between, on_, keys_, nccl_endpoint{std::move(key), size, member}, finalize_timeout_)
      .first->second;
}

algorithm nccl_backend::run(const collective_operation& what, std::uint64_t sequence) {
  if (what.peer < 0) enter(what, sequence);
  bool is_barrier = what.signature.kind == collective_kind::barrier;
  const auto& issued = is_barrier ? barrier_ : what;
  if (issued.signature.count > 0) {
    nccl_connection* on = nullptr;
    co_await until(
        [&] { return holds([&] { return on = &connection_for(what), on->is_ready(); }, what, sequence); });
    co_await until([&] {
      return holds([&] { return on->issue([&] { issue_call(*on, issued); }), true; }, what, sequence);
    });
    co_await until([&] { return holds([&] { return on->is_issued(); }, what, sequence); });
    co_await until([&] { return holds([&] { return on->mark_end(), true; }, what, sequence); });
    co_await until([&] { return holds([&] { return on->has_ended(); }, what, sequence); });
  }
  if (what.peer < 0) leave();
}

bool nccl_backend::holds(const std::function<bool()>& state, const collective_operation& what,
                         std::uint64_t sequence) {
  try {
    return state();
  } catch (const aborted_with_another& failure) {
    fail_with_another(failure.cause(), sequence);
  } catch (const nccl_error& failure) {
    if (failure.may_be_of_others()) fail(failure.what(), what, sequence);
    fail_locally(failure.what(), what, sequence);
  } catch (const cuda_error& failure) {
    fail_locally(failure.what(), what, sequence);
  } catch (const device_lost& failure) {
    fail_locally(failure.what(), what, sequence);
  }
}

/// The others of this group hear of it by their time-outs, and then read why.
void nccl_backend::fail_with_another(const collective_error& cause, std::uint64_t sequence) {
  collective_error error(cause.kind(), group().name, sequence, cause.ranks(),
                         "group " + group().name + " was aborted together with another on " +
                             to_string(device()) +
                             ", since NCCL's abort waits for the calls of all groups there: " + cause.what());
  close(error);
  throw error;
}

void nccl_backend::close(const collective_error& why) noexcept {
  std::vector<nccl_connection*> all;
  for (auto& [between, each] : connections_) all.push_back(&each);
  on_->abort(all, why);
}

}  // namespace troupe::collective
