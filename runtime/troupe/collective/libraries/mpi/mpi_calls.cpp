#include "troupe/collective/libraries/mpi/mpi_backend.hpp"

#include <limits>
#include <utility>

#include "troupe/collective/libraries/library_backend.hpp"
#include "troupe/collective/libraries/reduced_elements.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::collective::mpi_calls {
namespace {

/// MPI_MAX and MPI_MIN of floats may leave NaN out, so such elements go as integers in the same order.
bool has_ordered_keys(const call_signature& call) {
  return is_floating(call.type) && (call.op == reduce_op::max || call.op == reduce_op::min);
}

MPI_Datatype reduced_type(dtype type) {
  if (type == dtype::f32) return MPI_FLOAT;
  if (type == dtype::i32) return MPI_INT32_T;
  if (type == dtype::i64) return MPI_INT64_T;
  return MPI_UINT8_T;
}

/// The type of elements that are only copied, by their size.
MPI_Datatype copied_type(dtype type) {
  if (size_bytes(type) == 8) return MPI_UINT64_T;
  if (size_bytes(type) == 4) return MPI_UINT32_T;
  return size_bytes(type) == 2 ? MPI_UINT16_T : MPI_UINT8_T;
}

MPI_Op op_of(reduce_op op) {
  if (op == reduce_op::max) return MPI_MAX;
  if (op == reduce_op::min) return MPI_MIN;
  return op == reduce_op::product ? MPI_PROD : MPI_SUM;  // a mean is divided by finish()
}

int count_of(std::int64_t count) {
  if (count > std::numeric_limits<int>::max())
    throw_invalid("mpi", "at most 2^31 - 1 elements a call", std::to_string(count));
  return static_cast<int>(count);
}

bool is_reduction(collective_kind kind) {
  return kind == collective_kind::all_reduce || kind == collective_kind::reduce ||
         kind == collective_kind::reduce_scatter;
}

void lay_out(mpi_call& running, const collective_operation& what) {
  int begin = 0;
  for (auto part : what.parts) {
    running.counts.push_back(count_of(part));
    running.offsets.push_back(begin);
    begin += running.counts.back();
  }
}

int begin_reduction(mpi_call& running, MPI_Comm comm, const collective_operation& what, int member) {
  auto op = op_of(what.signature.op);
  auto count = count_of(what.signature.count);
  running.input = reduced_elements::widened(what.input);
  if (has_ordered_keys(what.signature))
    running.input = reduced_elements::ordered_keys(running.input, what.signature.op);
  auto type = reduced_type(running.input.dtype());
  auto part = what.parts.empty() ? what.signature.count : what.parts[static_cast<std::size_t>(member)];
  running.output = tensor::empty({part}, running.input.dtype());
  const void* from = std::as_const(running.input).bytes().data();
  void* to = running.output.bytes().data();
  if (what.signature.kind == collective_kind::all_reduce)
    return MPI_Iallreduce(from, to, count, type, op, comm, &running.request);
  if (what.signature.kind == collective_kind::reduce)
    return MPI_Ireduce(from, to, count, type, op, what.signature.root, comm, &running.request);
  return MPI_Ireduce_scatter(from, to, running.counts.data(), type, op, comm, &running.request);
}

}  // namespace

int exchange_signatures(mpi_call& running, MPI_Comm comm, const collective_operation& what) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  running.own = what.signature;
  running.signatures.resize(static_cast<std::size_t>(size));
  constexpr int bytes = sizeof(call_signature);
  return MPI_Iallgather(&running.own, bytes, MPI_BYTE, running.signatures.data(), bytes, MPI_BYTE, comm,
                        &running.request);
}

int begin(mpi_call& running, MPI_Comm comm, const collective_operation& what, int member, int size) {
  lay_out(running, what);
  auto kind = what.signature.kind;
  if (is_reduction(kind)) return begin_reduction(running, comm, what, member);
  auto type = copied_type(what.signature.type);
  auto root = what.signature.root;
  auto part = running.counts.empty() ? 0 : running.counts[static_cast<std::size_t>(member)];
  running.input = what.input;
  bool writes = what.output.defined();
  if (writes) running.output = tensor::empty(what.output.shape(), what.signature.type);
  const void* from = running.input.defined() ? std::as_const(running.input).bytes().data() : nullptr;
  void* to = writes ? running.output.bytes().data() : nullptr;
  switch (kind) {
    case collective_kind::all_gather:
      return MPI_Iallgatherv(from, part, type, to, running.counts.data(), running.offsets.data(), type, comm,
                             &running.request);
    case collective_kind::broadcast:
      if (member == root) running.output.copy_from(what.input);
      return MPI_Ibcast(to, count_of(what.signature.count), type, root, comm, &running.request);
    case collective_kind::gather:
      return MPI_Igather(from, part, type, to, part, type, root, comm, &running.request);
    case collective_kind::scatter:
      return MPI_Iscatter(from, part, type, to, part, type, root, comm, &running.request);
    case collective_kind::all_to_all:
      return MPI_Ialltoall(from, count_of(what.signature.count / size), type, to,
                           count_of(what.signature.count / size), type, comm, &running.request);
    default:
      throw std::logic_error("[mpi] no call of elements");
  }
}

void finish(mpi_call& running, const collective_operation& what, int member, int size) {
  bool writes = what.output.defined() &&
                !(what.signature.kind == collective_kind::reduce && what.signature.root != member);
  if (!writes) return;
  if (is_reduction(what.signature.kind)) {
    auto reduced = has_ordered_keys(what.signature) ? reduced_elements::from_ordered_keys(running.output)
                                                    : running.output;
    return reduced_elements::finish(reduced, what.signature.op, size, what.output);
  }
  auto output = what.output;
  output.copy_from(running.output);
}

}  // namespace troupe::collective::mpi_calls
