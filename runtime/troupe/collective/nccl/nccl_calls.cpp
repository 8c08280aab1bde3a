#include "troupe/collective/nccl/nccl_calls.hpp"

#include <utility>

namespace troupe::nccl_calls {
namespace {

ncclDataType_t type_of(dtype type) {
  if (type == dtype::f32) return ncclFloat32;
  if (type == dtype::bf16) return ncclBfloat16;
  if (type == dtype::f16) return ncclFloat16;
  if (type == dtype::i32) return ncclInt32;
  return type == dtype::i64 ? ncclInt64 : ncclUint8;
}

ncclRedOp_t op_of(reduce_op op) {
  if (op == reduce_op::sum) return ncclSum;
  if (op == reduce_op::mean) return ncclAvg;
  if (op == reduce_op::max) return ncclMax;
  return op == reduce_op::min ? ncclMin : ncclProd;
}

/// One operation's arguments as NCCL wants them.
struct arguments {
  const nccl_connection& on;
  const collective_operation& what;
  const std::byte* from = what.input.bytes().data();
  std::byte* to = tensor(what.output).bytes().data();
  ncclDataType_t type = type_of(what.signature.type);
  ncclRedOp_t op = op_of(what.signature.op);
  std::size_t count = static_cast<std::size_t>(what.signature.count);
  int root = what.signature.root;

  std::size_t part(int member) const {
    return static_cast<std::size_t>(what.parts[static_cast<std::size_t>(member)]);
  }
  std::size_t offset(int member) const {
    return static_cast<std::size_t>(part_begin(what, member)) * size_bytes(what.signature.type);
  }
};

/// Calls of NCCL between its group_start and group_end, which run together. The group ends in any case: one
/// left open would hold back whatever this thread asks of NCCL later.
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

void send(const arguments& with, const std::byte* from, std::size_t count, int to) {
  if (count > 0) check(nccl().send(from, count, with.type, to, with.on.communicator(), with.on.stream()));
}
void receive(const arguments& with, std::byte* to, std::size_t count, int from) {
  if (count > 0) check(nccl().receive(to, count, with.type, from, with.on.communicator(), with.on.stream()));
}

// Unequal parts: a reduction to each member.
void reduce_scatter(const arguments& with) {
  auto own = with.part(with.on.member());
  if (with.what.signature.layout == 0)
    return check(nccl().reduce_scatter(with.from, with.to, own, with.type, with.op, with.on.communicator(),
                                       with.on.stream()));
  grouped calls;
  for (int i = 0; i < with.on.num_members(); ++i)
    if (with.part(i) > 0)
      check(nccl().reduce(with.from + with.offset(i), with.to, with.part(i), with.type, with.op, i,
                          with.on.communicator(), with.on.stream()));
  calls.end();
}

// Unequal parts: a broadcast from each member.
void all_gather(const arguments& with) {
  if (with.what.signature.layout == 0)
    return check(nccl().all_gather(with.from, with.to, with.part(0), with.type, with.on.communicator(),
                                   with.on.stream()));
  grouped calls;
  for (int i = 0; i < with.on.num_members(); ++i)
    if (with.part(i) > 0)
      check(nccl().broadcast(i == with.on.member() ? with.from : with.to + with.offset(i),
                             with.to + with.offset(i), with.part(i), with.type, i, with.on.communicator(),
                             with.on.stream()));
  calls.end();
}

void gather(const arguments& with) {
  grouped calls;
  send(with, with.from, with.part(with.on.member()), with.root);
  if (with.on.member() == with.root)
    for (int i = 0; i < with.on.num_members(); ++i) receive(with, with.to + with.offset(i), with.part(i), i);
  calls.end();
}

void scatter(const arguments& with) {
  grouped calls;
  if (with.on.member() == with.root)
    for (int i = 0; i < with.on.num_members(); ++i) send(with, with.from + with.offset(i), with.part(i), i);
  receive(with, with.to, with.part(with.on.member()), with.root);
  calls.end();
}

void all_to_all(const arguments& with) {
  grouped calls;
  for (int i = 0; i < with.on.num_members(); ++i) {
    send(with, with.from + with.offset(i), with.part(i), i);
    receive(with, with.to + with.offset(i), with.part(i), i);
  }
  calls.end();
}

}  // namespace

void issue(const nccl_connection& on, const collective_operation& what) {
  arguments with{on, what};
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return check(nccl().all_reduce(with.from, with.to, with.count, with.type, with.op, on.communicator(),
                                     on.stream()));
    case collective_kind::reduce_scatter:
      return reduce_scatter(with);
    case collective_kind::all_gather:
      return all_gather(with);
    case collective_kind::broadcast:
      return check(nccl().broadcast(with.from, with.to, with.count, with.type, with.root, on.communicator(),
                                    on.stream()));
    case collective_kind::reduce:
      return check(nccl().reduce(with.from, with.to, with.count, with.type, with.op, with.root,
                                 on.communicator(), on.stream()));
    case collective_kind::gather:
      return gather(with);
    case collective_kind::scatter:
      return scatter(with);
    case collective_kind::all_to_all:
      return all_to_all(with);
    case collective_kind::send:  // in a communicator of two, whose member 0 sends
      return send(with, with.from, with.count, 1);
    case collective_kind::receive:
      return receive(with, with.to, with.count, 0);
    case collective_kind::barrier:
      return;
  }
}

}  // namespace troupe::nccl_calls
