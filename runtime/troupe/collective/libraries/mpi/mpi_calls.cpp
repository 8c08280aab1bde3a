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

void lay_out(mpi_call& in, const collective_operation& what) {
  int begin = 0;
  for (auto part : what.parts) {
    in.counts.push_back(count_of(part));
    in.offsets.push_back(begin);
    begin += in.counts.back();
  }
}

int begin_reduction(mpi_call& in, MPI_Comm with, const collective_operation& what, int member) {
  auto op = op_of(what.signature.op);
  auto count = count_of(what.signature.count);
  in.input = reduced_elements::widened(what.input);
  if (has_ordered_keys(what.signature))
    in.input = reduced_elements::ordered_keys(in.input, what.signature.op);
  auto type = reduced_type(in.input.dtype());
  auto part = what.parts.empty() ? what.signature.count : what.parts[static_cast<std::size_t>(member)];
  in.output = tensor::empty({part}, in.input.dtype());
  const void* from = std::as_const(in.input).bytes().data();
  void* to = in.output.bytes().data();
  if (what.signature.kind == collective_kind::all_reduce)
    return MPI_Iallreduce(from, to, count, type, op, with, &in.request);
  if (what.signature.kind == collective_kind::reduce)
    return MPI_Ireduce(from, to, count, type, op, what.signature.root, with, &in.request);
  return MPI_Ireduce_scatter(from, to, in.counts.data(), type, op, with, &in.request);
}

}  // namespace

int exchange_signatures(mpi_call& in, MPI_Comm with, const collective_operation& what) {
  int size = 0;
  MPI_Comm_size(with, &size);
  in.own = what.signature;
  in.signatures.resize(static_cast<std::size_t>(size));
  constexpr int bytes = sizeof(call_signature);
  return MPI_Iallgather(&in.own, bytes, MPI_BYTE, in.signatures.data(), bytes, MPI_BYTE, with, &in.request);
}

int begin(mpi_call& in, MPI_Comm with, const collective_operation& what, int member, int size) {
  lay_out(in, what);
  auto kind = what.signature.kind;
  if (is_reduction(kind)) return begin_reduction(in, with, what, member);
  auto type = copied_type(what.signature.type);
  auto root = what.signature.root;
  auto part = in.counts.empty() ? 0 : in.counts[static_cast<std::size_t>(member)];
  in.input = what.input;
  bool writes = what.output.defined();
  if (writes) in.output = tensor::empty(what.output.shape(), what.signature.type);
  const void* from = in.input.defined() ? std::as_const(in.input).bytes().data() : nullptr;
  void* to = writes ? in.output.bytes().data() : nullptr;
  switch (kind) {
    case collective_kind::all_gather:
      return MPI_Iallgatherv(from, part, type, to, in.counts.data(), in.offsets.data(), type, with,
                             &in.request);
    case collective_kind::broadcast:
      if (member == root) in.output.copy_from(what.input);
      return MPI_Ibcast(to, count_of(what.signature.count), type, root, with, &in.request);
    case collective_kind::gather:
      return MPI_Igather(from, part, type, to, part, type, root, with, &in.request);
    case collective_kind::scatter:
      return MPI_Iscatter(from, part, type, to, part, type, root, with, &in.request);
    case collective_kind::all_to_all:
      return MPI_Ialltoall(from, count_of(what.signature.count / size), type, to,
                           count_of(what.signature.count / size), type, with, &in.request);
    default:
      throw std::logic_error("[mpi] no call of elements");
  }
}

void finish(mpi_call& in, const collective_operation& what, int member, int size) {
  bool writes = what.output.defined() &&
                !(what.signature.kind == collective_kind::reduce && what.signature.root != member);
  if (!writes) return;
  if (is_reduction(what.signature.kind)) {
    auto reduced =
        has_ordered_keys(what.signature) ? reduced_elements::from_ordered_keys(in.output) : in.output;
    return reduced_elements::finish(reduced, what.signature.op, size, what.output);
  }
  auto output = what.output;
  output.copy_from(in.output);
}

}  // namespace troupe::collective::mpi_calls
