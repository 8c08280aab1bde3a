#include "troupe/process_group.hpp"

#include <algorithm>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group/group_builder.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

ProcessGroup::ProcessGroup(std::shared_ptr<communicator> own) : own_(std::move(own)) {
  if (!own_) throw_invalid("ProcessGroup", "a communicator", "a null pointer");
}

ProcessGroup ProcessGroup::of_others(std::vector<int> ranks) {
  ProcessGroup made;
  made.others_ = std::make_shared<const std::vector<int>>(std::move(ranks));
  return made;
}

ProcessGroup::operator std::shared_ptr<communicator>() const {
  own();
  return own_;
}

const std::string& ProcessGroup::name() const { return own().group().name; }
const std::vector<int>& ProcessGroup::ranks() const { return own_ ? own_->group().ranks : *others_; }
int ProcessGroup::rank() const { return own_ ? own_->rank() : -1; }
bool ProcessGroup::contains(int world_rank) const { return std::ranges::count(ranks(), world_rank) != 0; }
std::string_view ProcessGroup::backend() const { return own().backend(); }

work ProcessGroup::all_reduce(tensor x, reduce_op op, const call_options& options) const {
  return held(own().all_reduce(std::move(x), op, options));
}

work ProcessGroup::all_reduce(const tensor& x, tensor result, reduce_op op,
                              const call_options& options) const {
  return held(own().all_reduce(x, std::move(result), op, options));
}

work ProcessGroup::reduce_scatter(const tensor& x, tensor result, reduce_op op,
                                  const call_options& options) const {
  return held(own().reduce_scatter(x, std::move(result), op, options));
}

work ProcessGroup::reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                  reduce_op op, const call_options& options) const {
  return held(own().reduce_scatter(x, std::move(result), std::move(parts), op, options));
}

work ProcessGroup::all_gather(const tensor& part, tensor all, const call_options& options) const {
  return held(own().all_gather(part, std::move(all), options));
}

work ProcessGroup::all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                              const call_options& options) const {
  return held(own().all_gather(part, std::move(all), std::move(parts), options));
}

work ProcessGroup::broadcast(tensor x, int root, const call_options& options) const {
  return held(own().broadcast(std::move(x), member_of(root, "broadcast"), options));
}

work ProcessGroup::reduce(const tensor& x, tensor result, int root, reduce_op op,
                          const call_options& options) const {
  return held(own().reduce(x, std::move(result), member_of(root, "reduce"), op, options));
}

work ProcessGroup::gather(const tensor& part, tensor all, int root, const call_options& options) const {
  return held(own().gather(part, std::move(all), member_of(root, "gather"), options));
}

work ProcessGroup::scatter(const tensor& all, tensor part, int root, const call_options& options) const {
  return held(own().scatter(all, std::move(part), member_of(root, "scatter"), options));
}

work ProcessGroup::all_to_all(const tensor& x, tensor result, const call_options& options) const {
  return held(own().all_to_all(x, std::move(result), options));
}

work ProcessGroup::send(const tensor& x, int to, const call_options& options) const {
  return held(own().send(x, member_of(to, "send"), options));
}

work ProcessGroup::receive(tensor x, int from, const call_options& options) const {
  return held(own().receive(std::move(x), member_of(from, "receive"), options));
}

work ProcessGroup::barrier(const call_options& options) const { return held(own().barrier(options)); }

tensor ProcessGroup::allocate(shape extents, dtype type) const {
  return own().allocate(std::move(extents), type);
}

void ProcessGroup::abort(const std::string& cause) const { own().abort(cause); }
bool ProcessGroup::has_failed() const { return own().failure() != nullptr; }
std::string ProcessGroup::recent_calls() const { return own().recent_calls(); }

communicator& ProcessGroup::own() const {
  if (!own_)
    throw std::logic_error("[ProcessGroup] expected a member of group " + group_builder::name_of(*others_) +
                           ", got a process outside it: look with contains(world.rank()) before");
  return *own_;
}

int ProcessGroup::member_of(int world_rank, const char* where) const {
  const auto& members = own().group().ranks;
  auto found = std::ranges::find(members, world_rank);
  if (found == members.end())
    throw_invalid(where, "a rank of group " + own().group().name, std::to_string(world_rank));
  return static_cast<int>(found - members.begin());
}

work ProcessGroup::held(work started) const {
  started.keep(own_);
  return started;
}

}  // namespace troupe
