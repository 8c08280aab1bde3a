#include "support/fake_nccl/launch.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::fake_nccl {
namespace {

dtype dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return dtype::f32;
    case ncclBfloat16:
      return dtype::bf16;
    case ncclFloat16:
      return dtype::f16;
    case ncclInt32:
      return dtype::i32;
    case ncclInt64:
      return dtype::i64;
    default:
      return dtype::u8;
  }
}

reduce_op reduce_op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclAvg:
      return reduce_op::mean;
    case ncclMax:
      return reduce_op::max;
    case ncclMin:
      return reduce_op::min;
    case ncclProd:
      return reduce_op::product;
    default:
      return reduce_op::sum;
  }
}

bool is_message(const member_call& call) {
  return call.kind == call_kind::send || call.kind == call_kind::receive;
}

std::size_t bytes_of(const member_call& call, std::size_t elements) {
  return elements * size_bytes(dtype_of(call.type));
}

/// The calls of one collective operation, by member.
using operation = std::vector<member_call>;

bool is_same(const member_call& a, const member_call& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.op == b.op && a.root == b.root;
}

/// Elements [first, first + count) of all members' inputs, reduced.
std::vector<std::byte> reduced(const operation& all, std::size_t first, std::size_t count) {
  std::vector<std::byte> result(bytes_of(all[0], count));
  std::vector<const std::byte*> inputs;
  for (const auto& each : all) inputs.push_back(each.from + bytes_of(each, first));
  std::byte* output = result.data();
  tree_reduce(inputs, {&output, 1}, static_cast<std::int64_t>(count), dtype_of(all[0].type),
              reduce_op_of(all[0].op));
  return result;
}

/// The output of each member. Computed before any output is written, since operations may be in place.
std::vector<std::vector<std::byte>> results_of(const operation& all) {
  std::vector<std::vector<std::byte>> results(all.size());
  const auto& any = all[0];
  auto root = static_cast<std::size_t>(any.root);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (any.kind == call_kind::all_reduce || (any.kind == call_kind::reduce && i == root))
      results[i] = reduced(all, 0, any.count);
    if (any.kind == call_kind::reduce_scatter) results[i] = reduced(all, i * any.count, any.count);
    if (any.kind == call_kind::broadcast)
      results[i].assign(all[root].from, all[root].from + bytes_of(any, any.count));
    if (any.kind == call_kind::all_gather)
      for (const auto& each : all)
        results[i].insert(results[i].end(), each.from, each.from + bytes_of(each, each.count));
  }
  return results;
}

void write(std::byte* to, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

/// Splits a launch into its collective operations, in order. False if the members' calls differ.
bool split(const std::vector<launch>& by_member, std::vector<operation>& operations) {
  for (const auto& of_member : by_member) {
    std::size_t number = 0;
    for (const auto& call : of_member) {
      if (is_message(call)) continue;
      if (number == operations.size()) operations.emplace_back();
      operations[number++].push_back(call);
    }
  }
  return std::ranges::all_of(operations, [&](const operation& each) {
    return each.size() == by_member.size() &&
           std::ranges::all_of(each, [&](const member_call& call) { return is_same(call, each[0]); });
  });
}

struct message {
  std::vector<std::byte> bytes;
  std::byte* to;
};

/// Pairs the sends and receives of a launch. False if they do not match.
bool match(const std::vector<launch>& by_member, std::vector<message>& messages) {
  std::map<std::pair<int, int>, std::deque<member_call>> sent;  // by sender and receiver
  for (std::size_t i = 0; i < by_member.size(); ++i)
    for (const auto& call : by_member[i])
      if (call.kind == call_kind::send) sent[{static_cast<int>(i), call.root}].push_back(call);
  for (std::size_t i = 0; i < by_member.size(); ++i)
    for (const auto& call : by_member[i]) {
      if (call.kind != call_kind::receive) continue;
      auto& from_peer = sent[{call.root, static_cast<int>(i)}];
      if (from_peer.empty() || from_peer.front().count != call.count || from_peer.front().type != call.type)
        return false;
      const auto* from = from_peer.front().from;
      messages.push_back({{from, from + bytes_of(call, call.count)}, call.to});
      from_peer.pop_front();
    }
  return std::ranges::all_of(sent, [](const auto& left) { return left.second.empty(); });
}

}  // namespace

std::size_t input_bytes_of(const member_call& call, int num_members) {
  bool has_parts = call.kind == call_kind::reduce_scatter;
  return bytes_of(call, call.count * static_cast<std::size_t>(has_parts ? num_members : 1));
}

std::size_t output_bytes_of(const member_call& call, int num_members) {
  bool has_parts = call.kind == call_kind::all_gather;
  return bytes_of(call, call.count * static_cast<std::size_t>(has_parts ? num_members : 1));
}

bool carry_out(const std::vector<launch>& by_member) {
  std::vector<operation> operations;
  std::vector<message> messages;
  if (!split(by_member, operations) || !match(by_member, messages)) return false;
  for (const auto& each : operations) {
    auto results = results_of(each);
    for (std::size_t i = 0; i < each.size(); ++i) write(each[i].to, results[i]);
  }
  for (const auto& each : messages) write(each.to, each.bytes);
  return true;
}

}  // namespace troupe::fake_nccl
