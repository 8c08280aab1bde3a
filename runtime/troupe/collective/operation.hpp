#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troupe/ops/tree_reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

enum class collective_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  send,
  receive
};
std::string_view to_string(collective_kind kind);

/// What every member must say alike when it makes the same call. Plain bytes: it travels through shared
/// memory and messages.
struct call_signature {
  collective_kind kind = collective_kind::barrier;
  reduce_op op = reduce_op::sum;
  dtype type = dtype::f32;
  std::uint8_t unused = 0;
  std::int32_t root = -1;  ///< member index of broadcast, reduce, gather and scatter, else -1
  std::int64_t count =
      0;  ///< elements: of the whole (reduce_scatter, all_gather, gather, scatter, all_to_all: all parts)
  std::uint64_t layout = 0;  ///< a hash of the parts' sizes where they are unequal, else 0
  bool operator==(const call_signature&) const = default;
};

/// "all_reduce(sum, f32[1024])", "broadcast(f32[8], root 2)", "barrier"
std::string to_string(const call_signature& signature);

/// One call of one member, checked. n: the number of members, c: signature.count.
///
/// | kind | input | output | parts |
/// |---|---|---|---|
/// | all_reduce | [c] | [c], may be the input | |
/// | reduce_scatter | [c] | [parts[me]], may be that part of the input | n, sum c |
/// | all_gather | [parts[me]], may be that part of the output | [c] | n, sum c |
/// | broadcast | as output | [c] | |
/// | reduce | [c] | root: [c], may be the input; else undefined | |
/// | gather | [parts[me]] | root: [c]; else undefined | n, sum c |
/// | scatter | root: [c]; else undefined | [parts[me]] | n, sum c |
/// | all_to_all | [c] | [c], not the input | n equal ones |
/// | send | [c] | undefined | |
/// | receive | undefined | [c] | |
struct collective_operation {
  collective_operation() = default;
  collective_operation(const call_signature& says, tensor from, tensor to, std::vector<std::int64_t> of = {},
                       int with = -1)
      : signature(says), input(std::move(from)), output(std::move(to)), parts(std::move(of)), peer(with) {}

  call_signature signature;
  tensor input, output;
  std::vector<std::int64_t> parts;  ///< elements, by member
  int peer = -1;                    ///< member index, of send and receive

  /// The elements of the output, which is a handle: they are not a part of this description.
  std::span<std::byte> output_bytes() const { return const_cast<tensor&>(output).bytes(); }
};

/// Where part `member` begins, in elements.
std::int64_t part_begin(const collective_operation& what, int member);

}  // namespace troupe
