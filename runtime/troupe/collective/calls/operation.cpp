#include "troupe/collective/calls/operation.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <numeric>

#include "troupe/error/errors.hpp"
#include "troupe/hash/fnv1a.hpp"

namespace troupe::collective {

std::string_view to_string(collective_kind kind) {
  constexpr std::array<std::string_view, 11> names{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                   "reduce",     "gather",         "scatter",    "all_to_all",
                                                   "barrier",    "send",           "receive"};
  return names.at(static_cast<std::size_t>(kind));
}

namespace {

/// Tells apart lists of parts with the same sum.
std::string hash_text(std::uint64_t layout) {
  std::array<char, 17> hash{};
  std::snprintf(hash.data(), hash.size(), "%016llx", static_cast<unsigned long long>(layout));
  return std::string("list ") + hash.data();
}

}  // namespace

std::string to_string(const call_signature& signature) {
  std::string text(to_string(signature.kind));
  if (signature.kind == collective_kind::barrier) return text;
  bool reduces = signature.kind == collective_kind::all_reduce || signature.kind == collective_kind::reduce ||
                 signature.kind == collective_kind::reduce_scatter;
  text += '(';
  if (reduces) text += std::string(to_string(signature.op)) + ", ";
  text += std::string(to_string(signature.type)) + '[' + std::to_string(signature.count) + ']';
  if (signature.layout != 0)
    text += signature.kind == collective_kind::all_reduce
                ? " of " + text_of_logical_ranks(signature.layout)
                : " in unequal parts, " + hash_text(signature.layout);
  if (signature.root >= 0) text += ", root " + std::to_string(signature.root);
  return text + ')';
}

std::int64_t part_begin(const collective_operation& what, member_index member) {
  return std::accumulate(what.parts.begin(), what.parts.begin() + member, std::int64_t{0});
}

namespace {

void require_tensor(const tensor& x, const char* where, const char* what) {
  if (!x.defined()) throw_invalid(where, std::string("a tensor as ") + what, "an undefined one");
}

/// For calls that compute. Those that move elements take bool too.
void require_numbers(const tensor& x, const char* where, const char* what) {
  require_tensor(x, where, what);
  if (x.dtype() == dtype::boolean)
    throw_invalid(where,
                  std::string(what) +
                      " of f32, bf16, f16, i32, i64 or u8 (bool tensors are moved, but not reduced: convert "
                      "them to u8)",
                  describe(x));
}

void require_same_call(const tensor& x, dtype type, std::int64_t num_elements, const char* where,
                       const char* what) {
  require_tensor(x, where, what);
  if (x.dtype() != type || x.num_elements() != num_elements)
    throw_invalid(where,
                  std::string(what) + " of " + std::to_string(num_elements) + " elements of " +
                      std::string(to_string(type)),
                  describe(x));
}

bool overlap(const tensor& a, const tensor& b) {
  auto x = a.bytes(), y = b.bytes();
  std::less<const std::byte*> before;
  return before(x.data(), y.data() + y.size()) && before(y.data(), x.data() + x.size());
}

/// 0 for equal parts; otherwise a hash of the sizes, never 0.
std::uint64_t layout_of(const std::vector<std::int64_t>& parts) {
  bool equal = std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) == parts.end();
  if (equal) return 0;
  fnv1a hash;
  for (auto part : parts) hash.add(static_cast<std::uint64_t>(part));
  return hash.value() | 1;
}

std::int64_t total(const std::vector<std::int64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

/// Output and input share no memory, or the smaller one is the part of `member` in the other.
void require_in_place(const collective_operation& made, member_index member) {
  if (!made.input.defined() || !made.output.defined() || !overlap(made.input, made.output)) return;
  bool is_gathered = made.input.num_elements() < made.output.num_elements();
  const auto &part = is_gathered ? made.input : made.output, &whole = is_gathered ? made.output : made.input;
  auto first = made.parts.empty() ? 0 : part_begin(made, member);
  auto offset = first * static_cast<std::int64_t>(size_bytes(whole.dtype()));
  if (part.bytes().data() == whole.bytes().data() + offset) return;
  throw_invalid(std::string(to_string(made.signature.kind)).c_str(),
                "input and output that share no memory, or the one in its place in the other",
                describe(made.input) + " and " + describe(made.output) + " that overlap elsewhere");
}

/// The result shares no memory with the nodes, or is the first of them.
void require_nodes_apart(const collective_operation& made) {
  const auto &nodes = made.input, &result = made.output;
  if (!nodes.defined() || !overlap(nodes, result)) return;
  if (result.dtype() == dtype::f32 && result.bytes().data() == nodes.bytes().data()) return;
  throw_invalid("all_reduce_leaves",
                "a result that shares no memory with the nodes, or in f32 the first node",
                describe(nodes) + " and " + describe(result) + " that overlap elsewhere");
}

collective_operation in_place(collective_operation made, member_index member) {
  require_in_place(made, member);
  return made;
}

call_signature signed_as(collective_kind kind, dtype type, std::int64_t count) {
  call_signature signature;
  signature.kind = kind;
  signature.type = type;
  signature.count = count;
  return signature;
}

}  // namespace

int num_inputs(const collective_operation& what, int member) {
  if (what.nodes.empty()) return 1;
  return static_cast<int>(std::ranges::count(what.nodes, member, &member_node::member));
}

int max_inputs(const collective_operation& what, int num_members) {
  int most = 0;
  for (int i = 0; i < num_members; ++i) most = std::max(most, num_inputs(what, i));
  return most;
}

void require_parts(const std::vector<std::int64_t>& parts, int num_members, const char* where) {
  bool fits = parts.size() == static_cast<std::size_t>(num_members) &&
              std::all_of(parts.begin(), parts.end(), [](std::int64_t part) { return part >= 0; });
  if (!fits)
    throw_invalid(
        where, std::to_string(num_members) + " part sizes >= 0, one a member",
        std::to_string(parts.size()) + " sizes" +
            (parts.empty() ? ""
                           : ", the least " + std::to_string(*std::min_element(parts.begin(), parts.end()))));
}

collective_operation all_reduce_of(const tensor& x, const tensor& result, reduce_op op) {
  require_numbers(x, "all_reduce", "x");
  require_same_call(result, x.dtype(), x.num_elements(), "all_reduce", "result");
  auto signature = signed_as(collective_kind::all_reduce, x.dtype(), x.num_elements());
  signature.op = op;
  collective_operation made(signature, x, result);
  require_in_place(made, 0);
  return made;
}

collective_operation all_reduce_leaves_of(const tensor& nodes, const tensor& result,
                                          const logical_rank_map& map, reduce_op op, member_index member) {
  constexpr auto where = "all_reduce_leaves";
  if (op != reduce_op::sum && op != reduce_op::mean) throw_invalid(where, "sum or mean", to_string(op));
  if (!result.defined() || !is_floating(result.dtype()))
    throw_invalid(where, "f32, bf16 or f16 as result", describe(result));
  auto num_nodes = static_cast<std::int64_t>(map.nodes_of(member).size());
  if (num_nodes > 0)
    require_same_call(nodes, dtype::f32, num_nodes * result.num_elements(), where, "nodes");
  else if (nodes.defined() && nodes.num_elements() > 0)
    throw_invalid(where, "no nodes on a member without leaves", describe(nodes));

  auto signature = signed_as(collective_kind::all_reduce, result.dtype(), result.num_elements());
  signature.op = op;
  signature.layout = map.signature();
  collective_operation made(signature, num_nodes > 0 ? nodes : tensor(), result);
  require_nodes_apart(made);
  // Then the members are the leaves of the same tree, and every backend of a fixed order has the bits.
  bool is_plain = map.is_tree_of_members() && result.dtype() == dtype::f32 &&
                  (op == reduce_op::sum || map.num_leaves() == map.num_members());
  if (!is_plain) made.nodes = map.nodes();
  return made;
}

collective_operation reduce_scatter_of(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                       reduce_op op, member_index member) {
  require_numbers(x, "reduce_scatter", "x");
  require_same_call(x, x.dtype(), total(parts), "reduce_scatter", "x");
  require_same_call(result, x.dtype(), parts[static_cast<std::size_t>(member)], "reduce_scatter", "result");
  auto signature = signed_as(collective_kind::reduce_scatter, x.dtype(), x.num_elements());
  signature.op = op;
  signature.layout = layout_of(parts);
  return in_place({signature, x, std::move(result), std::move(parts)}, member);
}

collective_operation all_gather_of(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                                   member_index member) {
  require_tensor(part, "all_gather", "part");
  require_same_call(part, part.dtype(), parts[static_cast<std::size_t>(member)], "all_gather", "part");
  require_same_call(all, part.dtype(), total(parts), "all_gather", "all");
  auto signature = signed_as(collective_kind::all_gather, all.dtype(), all.num_elements());
  signature.layout = layout_of(parts);
  return in_place({signature, part, std::move(all), std::move(parts)}, member);
}

collective_operation broadcast_of(tensor x, member_index root) {
  require_tensor(x, "broadcast", "x");
  auto signature = signed_as(collective_kind::broadcast, x.dtype(), x.num_elements());
  signature.root = root;
  return {signature, x, x, {}};
}

collective_operation reduce_of(const tensor& x, tensor result, member_index root, reduce_op op) {
  require_numbers(x, "reduce", "x");
  if (result.defined()) require_same_call(result, x.dtype(), x.num_elements(), "reduce", "result");
  auto signature = signed_as(collective_kind::reduce, x.dtype(), x.num_elements());
  signature.op = op;
  signature.root = root;
  return in_place({signature, x, std::move(result), {}}, 0);
}

collective_operation gather_of(const tensor& part, tensor all, member_index root, int num_members) {
  require_tensor(part, "gather", "part");
  std::vector<std::int64_t> parts(static_cast<std::size_t>(num_members), part.num_elements());
  if (all.defined()) require_same_call(all, part.dtype(), total(parts), "gather", "all");
  auto signature = signed_as(collective_kind::gather, part.dtype(), total(parts));
  signature.root = root;
  return in_place({signature, part, std::move(all), std::move(parts)}, root);
}

collective_operation scatter_of(const tensor& all, tensor part, member_index root, int num_members) {
  require_tensor(part, "scatter", "part");
  std::vector<std::int64_t> parts(static_cast<std::size_t>(num_members), part.num_elements());
  if (all.defined()) require_same_call(all, part.dtype(), total(parts), "scatter", "all");
  auto signature = signed_as(collective_kind::scatter, part.dtype(), total(parts));
  signature.root = root;
  return in_place({signature, all, std::move(part), std::move(parts)}, root);
}

collective_operation all_to_all_of(const tensor& x, tensor result, int num_members) {
  require_tensor(x, "all_to_all", "x");
  require_same_call(result, x.dtype(), x.num_elements(), "all_to_all", "result");
  if (x.num_elements() % num_members != 0)
    throw_invalid("all_to_all", "a multiple of " + std::to_string(num_members) + " elements as x",
                  describe(x));
  if (overlap(x, result))
    throw_invalid("all_to_all", "a result that shares no memory with x", "one that does");
  std::vector<std::int64_t> parts(static_cast<std::size_t>(num_members), x.num_elements() / num_members);
  return {signed_as(collective_kind::all_to_all, x.dtype(), x.num_elements()), x, std::move(result),
          std::move(parts)};
}

collective_operation send_of(const tensor& x, member_index peer) {
  require_tensor(x, "send", "x");
  return {signed_as(collective_kind::send, x.dtype(), x.num_elements()), x, {}, {}, peer};
}

collective_operation receive_of(tensor x, member_index peer) {
  require_tensor(x, "receive", "x");
  auto signature = signed_as(collective_kind::receive, x.dtype(), x.num_elements());
  return {signature, {}, std::move(x), {}, peer};
}

}  // namespace troupe::collective
