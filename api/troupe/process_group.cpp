#include "troupe/process_group.hpp"

#include <algorithm>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/group_builder.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

ProcessGroup::ProcessGroup(std::shared_ptr<communicator> own) : communicator_(std::move(own)) {
  if (!communicator_) throw_invalid("ProcessGroup", "a communicator", "a null pointer");
}

ProcessGroup ProcessGroup::non_member(std::vector<world_rank> ranks) {
  ProcessGroup made;
  made.non_member_ranks_ = std::make_shared<const std::vector<world_rank>>(std::move(ranks));
  return made;
}

ProcessGroup::operator std::shared_ptr<communicator>() const {
  own();
  return communicator_;
}

const std::string& ProcessGroup::name() const { return own().group().name; }
const std::vector<world_rank>& ProcessGroup::ranks() const {
  return communicator_ ? communicator_->group().ranks : *non_member_ranks_;
}
member_index ProcessGroup::rank() const { return communicator_ ? communicator_->rank() : member_index(-1); }
bool ProcessGroup::contains(world_rank rank) const { return std::ranges::count(ranks(), rank) != 0; }
std::string_view ProcessGroup::backend() const { return own().backend(); }

work ProcessGroup::all_reduce(tensor x, reduce_op op, const call_options& options) const {
  return keep_alive(own().all_reduce(x, op, options));
}

work ProcessGroup::all_reduce(const tensor& x, tensor result, reduce_op op,
                              const call_options& options) const {
  return keep_alive(own().all_reduce(x, result, op, options));
}

work ProcessGroup::reduce_scatter(const tensor& x, tensor result, reduce_op op,
                                  const call_options& options) const {
  return keep_alive(own().reduce_scatter(x, std::move(result), op, options));
}

work ProcessGroup::reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                  reduce_op op, const call_options& options) const {
  return keep_alive(own().reduce_scatter(x, std::move(result), std::move(parts), op, options));
}

work ProcessGroup::all_gather(const tensor& part, tensor all, const call_options& options) const {
  return keep_alive(own().all_gather(part, std::move(all), options));
}

work ProcessGroup::all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                              const call_options& options) const {
  return keep_alive(own().all_gather(part, std::move(all), std::move(parts), options));
}

work ProcessGroup::broadcast(tensor x, world_rank root, const call_options& options) const {
  return keep_alive(own().broadcast(std::move(x), member_of(root, "broadcast"), options));
}

work ProcessGroup::reduce(const tensor& x, tensor result, world_rank root, reduce_op op,
                          const call_options& options) const {
  return keep_alive(own().reduce(x, std::move(result), member_of(root, "reduce"), op, options));
}

work ProcessGroup::gather(const tensor& part, tensor all, world_rank root,
                          const call_options& options) const {
  return keep_alive(own().gather(part, std::move(all), member_of(root, "gather"), options));
}

work ProcessGroup::scatter(const tensor& all, tensor part, world_rank root,
                           const call_options& options) const {
  return keep_alive(own().scatter(all, std::move(part), member_of(root, "scatter"), options));
}

work ProcessGroup::all_to_all(const tensor& x, tensor result, const call_options& options) const {
  return keep_alive(own().all_to_all(x, std::move(result), options));
}

work ProcessGroup::send(const tensor& x, world_rank to, const call_options& options) const {
  return keep_alive(own().send(x, member_of(to, "send"), options));
}

work ProcessGroup::receive(tensor x, world_rank from, const call_options& options) const {
  return keep_alive(own().receive(std::move(x), member_of(from, "receive"), options));
}

work ProcessGroup::barrier(const call_options& options) const { return keep_alive(own().barrier(options)); }

tensor ProcessGroup::allocate(shape extents, dtype type) const {
  return own().allocate(std::move(extents), type);
}

void ProcessGroup::abort(const std::string& cause) const { own().abort(cause); }
bool ProcessGroup::has_failed() const { return own().failure() != nullptr; }
std::string ProcessGroup::recent_calls() const { return own().recent_calls(); }

communicator& ProcessGroup::own() const {
  if (!communicator_)
    throw std::logic_error("[ProcessGroup] expected a member of group " +
                           collective::group_builder::name_of(*non_member_ranks_) +
                           ", got a process outside it: look with contains(world.rank()) before");
  return *communicator_;
}

member_index ProcessGroup::member_of(world_rank rank, const char* function) const {
  auto member = own().group().member_of(rank);
  if (!member) throw_invalid(function, "a rank of group " + own().group().name, to_string(rank));
  return *member;
}

work ProcessGroup::keep_alive(work started) const {
  started.keep(communicator_);
  return started;
}

}  // namespace troupe
