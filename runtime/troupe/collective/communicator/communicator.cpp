#include "troupe/collective/communicator/communicator.hpp"

#include <algorithm>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe {
namespace {

communicator_options checked(communicator_options options) {
  if (options.timeout.count() <= 0)
    throw_invalid("communicator", "a time-out above 0", std::to_string(options.timeout.count()) + " ms");
  options.timeout = std::min(options.timeout, longest_timeout);
  if (!options.engine) options.engine = std::make_shared<collective::progress_engine>();
  return options;
}

std::vector<std::int64_t> equal_parts(std::int64_t part, int num_members) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(num_members), part);
}

std::int64_t nanoseconds_of(collective::call::clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void emit_call(trace::trace_kind kind, const collective::call& what, std::int64_t begin_ns,
               std::int64_t end_ns, std::uint16_t group) {
  const auto& signature = what.what.signature;
  trace::emit({.begin_ns = begin_ns,
               .end_ns = end_ns,
               .step = what.sequence,
               .kind = kind,
               .detail = static_cast<std::uint8_t>(signature.kind),
               .name = group,
               .bytes = static_cast<std::uint64_t>(profiled_bytes(signature))});
}

void emit_begun(const collective::call& what, std::uint16_t group) {
  auto begun = nanoseconds_of(what.begun);
  emit_call(trace::trace_kind::collective_begun, what, begun, begun, group);
}

/// A small call that ended at once leaves no event: reading the clock is a large part of its cost.
void emit_end(const collective::call& what, std::uint16_t group) {
  if (what.begun == collective::call::clock::time_point()) return;
  auto end = what.ended > what.begun ? nanoseconds_of(what.ended) : trace::now_ns();
  emit_call(trace::trace_kind::collective, what, nanoseconds_of(what.begun), end, group);
}

}  // namespace

communicator::communicator(group_description group, std::unique_ptr<collective::collective_backend> backend,
                           communicator_options options)
    : group_(std::move(group)),
      options_(checked(std::move(options))),
      backend_(options_.decorate ? options_.decorate(std::move(backend)) : std::move(backend)),
      recorder_(group_.ranks),
      progress_(*backend_, hooks(), options_.engine) {
  if (options_.listed_in) options_.listed_in->add(*this);
}

collective::operation_queue::callbacks communicator::hooks() {
  auto name = trace::name_number(group_.name);
  collective::operation_queue::callbacks all{
      .on_timeout = [this](const collective::call& late) { return timeout_error(late); },
      .on_cancel = [this](const collective::call& what) { return cancel_error(what); },
      .on_failure = [this](const auto& error) { return with_last_calls(error); },
      .on_wait =
          [this, name](const collective::call& what) {
            recorder_.on_wait(what);
            emit_begun(what, name);
          },
      .on_end =
          [this, name](const collective::call& what) {
            on_end(what);
            emit_end(what, name);
          }};
  all.after_end = options_.on_call_end;
  if (options_.profile)
    all.on_waited = [this](const collective::call& what, collective::call::clock::time_point since) {
      on_waited(what, since);
    };
  return all;
}

communicator::~communicator() {
  if (options_.listed_in) options_.listed_in->remove(*this);
  // progress_ cancels what has not ended
}

collective::collective_position communicator::position() const {
  auto found = recorder_.position();
  found.group = group_.name;
  for (auto rank : group_.ranks) found.ranks.push_back(rank.value());
  return found;
}

work communicator::all_reduce(const tensor& x, reduce_op op, const call_options& options) {
  return all_reduce(x, x, op, options);
}

work communicator::all_reduce(const tensor& x, const tensor& result, reduce_op op,
                              const call_options& options) {
  return start(collective::all_reduce_of(x, result, op), options);
}

work communicator::all_reduce_leaves(const tensor& nodes, const tensor& result,
                                     const collective::logical_rank_map& map, reduce_op op,
                                     const call_options& options) {
  require_fixed_tree(map);
  return start(all_reduce_leaves_of(nodes, result, map, op, rank()), options);
}

work communicator::reduce_scatter(const tensor& x, tensor result, reduce_op op, const call_options& options) {
  auto parts = equal_parts(result.num_elements(), size());
  return start(collective::reduce_scatter_of(x, std::move(result), std::move(parts), op, rank()), options);
}

work communicator::reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                  reduce_op op, const call_options& options) {
  collective::require_parts(parts, size(), "reduce_scatter");
  return start(collective::reduce_scatter_of(x, std::move(result), std::move(parts), op, rank()), options);
}

work communicator::all_gather(const tensor& part, tensor all, const call_options& options) {
  auto parts = equal_parts(part.num_elements(), size());
  return start(collective::all_gather_of(part, std::move(all), std::move(parts), rank()), options);
}

work communicator::all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                              const call_options& options) {
  collective::require_parts(parts, size(), "all_gather");
  return start(collective::all_gather_of(part, std::move(all), std::move(parts), rank()), options);
}

work communicator::broadcast(tensor x, member_index root, const call_options& options) {
  require_member(root, "broadcast");
  return start(collective::broadcast_of(std::move(x), root), options);
}

work communicator::reduce(const tensor& x, tensor result, member_index root, reduce_op op,
                          const call_options& options) {
  require_member(root, "reduce");
  require_on_root(result, root, "reduce", "result");
  return start(collective::reduce_of(x, root == rank() ? std::move(result) : tensor(), root, op), options);
}

work communicator::gather(const tensor& part, tensor all, member_index root, const call_options& options) {
  require_member(root, "gather");
  require_on_root(all, root, "gather", "all");
  return start(collective::gather_of(part, root == rank() ? std::move(all) : tensor(), root, size()),
               options);
}

work communicator::scatter(const tensor& all, tensor part, member_index root, const call_options& options) {
  require_member(root, "scatter");
  require_on_root(all, root, "scatter", "all");
  return start(collective::scatter_of(root == rank() ? all : tensor(), std::move(part), root, size()),
               options);
}

work communicator::all_to_all(const tensor& x, tensor result, const call_options& options) {
  return start(collective::all_to_all_of(x, std::move(result), size()), options);
}

work communicator::send(const tensor& x, member_index to, const call_options& options) {
  require_member(to, "send");
  if (to == rank()) throw_invalid("send", "another member than this one", std::to_string(to));
  return start(collective::send_of(x, to), options);
}

work communicator::receive(tensor x, member_index from, const call_options& options) {
  require_member(from, "receive");
  if (from == rank()) throw_invalid("receive", "another member than this one", std::to_string(from));
  return start(collective::receive_of(std::move(x), from), options);
}

work communicator::barrier(const call_options& options) {
  return start(collective::collective_operation{}, options);
}

void communicator::abort(const std::string& cause) {
  abort(collective_error(collective_failure::cancelled, group_.name, 0, {},
                         "group " + group_.name + " was aborted on rank " +
                             to_string(group_.rank_of(group_.member)) + ": " + cause));
}

void communicator::abort(const collective_error& why) { progress_.abort(std::make_exception_ptr(why)); }

void communicator::require_place(const tensor& x, const collective::collective_operation& what) const {
  if (x.defined() && x.device() != device())
    throw_invalid(std::string(to_string(what.signature.kind)).c_str(),
                  "a tensor on " + to_string(device()) + ", where the group's backend " +
                      std::string(backend()) + " works",
                  describe(x));
}

work communicator::start(collective::collective_operation&& what, const call_options& options) {
  refuse_in_capture(to_string(what.signature.kind));
  if (options.timeout.count() < 0)
    throw_invalid(std::string(to_string(what.signature.kind)).c_str(),
                  "a time-out above 0, or 0 for the group's",
                  std::to_string(options.timeout.count()) + " ms");
  require_place(what.input, what);
  require_place(what.output, what);
  auto added = std::make_shared<collective::call>(std::move(what), options);
  if (options.timeout.count() == 0) added->options.timeout = options_.timeout;
  added->options.timeout = std::min(added->options.timeout, longest_timeout);
  progress_.submit(added);
  return work(std::move(added), progress_);
}

void communicator::on_end(const collective::call& what) {
  recorder_.on_end(what);
  if (options_.profile && !what.error)
    options_.profile->add_call(key_of(what), size(), profiled_bytes(what.what.signature),
                               what.ended - what.begun);
}

void communicator::on_waited(const collective::call& what, collective::call::clock::time_point since) {
  if (what.error) return;
  auto begun = std::max(since, what.begun);
  auto waited = std::max(what.ended - since, collective::call::clock::duration(0));
  options_.profile->add_wait(key_of(what), waited,
                             std::max(what.ended - begun, collective::call::clock::duration(0)));
}

collective::profile_key communicator::key_of(const collective::call& what) const {
  return {group_.name, what.what.signature.kind, std::string(backend_->algorithm_of(what.what))};
}

std::exception_ptr communicator::timeout_error(const collective::call& late) {
  auto states = backend_->examine(late.sequence);
  return std::make_exception_ptr(
      collective::failure_diagnosis(group_).timed_out(late, states, recorder_.text()));
}

std::exception_ptr communicator::cancel_error(const collective::call& unwanted) const {
  return std::make_exception_ptr(
      collective::failure_diagnosis(group_).cancelled({unwanted.what.signature, unwanted.sequence}));
}

/// What members disagree about, or who was lost, is easier to understand from what was called before.
std::exception_ptr communicator::with_last_calls(const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const collective_error& failure) {
    bool has_use =
        failure.kind() == collective_failure::mismatch || failure.kind() == collective_failure::lost_member;
    if (!has_use) return error;
    return std::make_exception_ptr(
        collective_error(failure.kind(), failure.group(), failure.sequence(), failure.ranks(),
                         std::string(failure.what()) + ". The last calls of rank " +
                             to_string(group_.rank_of(group_.member)) + ":\n" + recorder_.text()));
  } catch (...) {
    return error;
  }
}

void communicator::require_on_root(const tensor& given, member_index root, const char* where,
                                   const char* what) const {
  if (root == rank() && !given.defined())
    throw_invalid(where, std::string("a tensor as ") + what + " on the root", "an undefined one");
}

void communicator::require_fixed_tree(const collective::logical_rank_map& map) const {
  if (!has_fixed_tree())
    throw_invalid("all_reduce_leaves", "a group over ucx or local, which reduce in the fixed tree",
                  "group " + group_.name + " over " + std::string(backend()));
  if (map.num_members() != size())
    throw_invalid("all_reduce_leaves", "a logical-rank map of " + std::to_string(size()) + " members",
                  map.text());
}

void communicator::require_member(member_index member, const char* where) const {
  if (member < 0 || member >= size())
    throw_invalid(where, "a member in [0, " + std::to_string(size()) + ")", std::to_string(member));
}

}  // namespace troupe
