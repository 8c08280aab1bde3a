#pragma once
#include "troupe/collective/operation.hpp"

namespace troupe {

// Operations from a call's arguments. Tensors that do not fit each other throw std::invalid_argument naming
// the call, the argument, what was expected and what came.

collective_operation all_reduce_of(const tensor& x, const tensor& result, reduce_op op);
collective_operation reduce_scatter_of(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                       reduce_op op, int member);
collective_operation all_gather_of(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                                   int member);
collective_operation broadcast_of(tensor x, int root);
/// result: undefined except on the root.
collective_operation reduce_of(const tensor& x, tensor result, int root, reduce_op op);
collective_operation gather_of(const tensor& part, tensor all, int root, int num_members);
collective_operation scatter_of(const tensor& all, tensor part, int root, int num_members);
collective_operation all_to_all_of(const tensor& x, tensor result, int num_members);
collective_operation send_of(const tensor& x, int peer);
collective_operation receive_of(tensor x, int peer);

/// One size >= 0 for each member.
void require_parts(const std::vector<std::int64_t>& parts, int num_members, const char* where);

}  // namespace troupe
