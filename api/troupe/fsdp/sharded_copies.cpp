#include "troupe/fsdp/sharded_copies.hpp"

#include <set>
#include <stdexcept>
#include <string>

#include "troupe/data_parallel/detail/gathered_parts.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fsdp/detail/sharded_model.hpp"
#include "troupe/fsdp/detail/state/complete_state.hpp"
#include "troupe/fsdp/detail/state/state_part.hpp"

namespace troupe {
namespace {

constexpr call_options by_waiter{.progress = progress_by::waiter};

/// A receiver: every member.
constexpr int everyone = -1;

void require_one_division(bool has_copies, const char* function) {
  if (has_copies)
    throw_invalid(function, "a model that is divided once",
                  "divisions side by side, which are copies of each other");
}

tensor numbers(const std::vector<std::int64_t>& values) {
  return tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

/// All parts of a state, in CPU memory: those that this member needs of its own.
std::vector<detail::held_tensor> held_now(const detail::sharded_model& model, nn::Module& module,
                                          const optim::optimizer_state& optimizer) {
  auto held = detail::held_weights(model);
  for (auto& each : detail::held_state(model, optimizer)) held.push_back(std::move(each));
  for (auto& each : detail::held_buffers(module)) held.push_back(std::move(each));
  return held;
}

/// What every member holds, of which each tells its own.
std::vector<detail::known_part> known_to_all(const tensor& own, communicator& group) {
  std::vector<detail::known_part> known;
  auto lists = detail::gather_parts(own, group);
  for (std::size_t member = 0; member < lists.size(); ++member)
    for (auto left = lists[member].values<std::int64_t>(); !left.empty(); left = left.subspan(3))
      known.push_back({left[0], left[1], left[2], static_cast<int>(member)});
  return known;
}

/// Copies of what a member holds, into which parts of a state are put one after the other.
class filled_copies {
 public:
  explicit filled_copies(std::vector<detail::held_tensor> own)
      : own_(std::move(own)), num_filled_(own_.size()) {
    for (auto& each : own_) each.value = each.value.to(device{}).clone();
  }

  void add(const tensor& part) {
    for (const auto& from : detail::unpack(part))
      for (std::size_t i = 0; i < own_.size(); ++i)
        if (own_[i].whole || num_filled_[i] == 0) num_filled_[i] += detail::copy_elements(from, own_[i]);
  }
  /// Throws if elements are missing.
  const std::vector<detail::held_tensor>& all() const {
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (num_filled_[i] != own_[i].value.num_elements())
        throw std::runtime_error(
            "[sharded_copies::restore] expected copies of this model and optimizer, got none of " +
            own_[i].name);
    return own_;
  }

 private:
  std::vector<detail::held_tensor> own_;
  std::vector<std::int64_t> num_filled_;
};

}  // namespace

void sharded_copies::finish_exchange() {
  received_.wait();
  if (coming_.defined()) held_[coming_id_] = std::exchange(coming_, {}).to(device{});
  sent_.wait();
  sent_ = received_ = {};
  group_.reset();
}

/// The group may have failed: what has come is kept all the same.
void sharded_copies::end_exchange() {
  try {
    finish_exchange();
  } catch (const collective_error&) {
    coming_ = {};
    sent_ = received_ = {};
    group_.reset();
  }
}

/// To come to a step all members have ended the exchange of the step before the last one; of that of the last
/// step each knows its own part alone.
void sharded_copies::keep_newest(std::int64_t num_parts, std::int64_t own_part) {
  constexpr std::size_t num_kept = 3;
  std::vector<std::uint64_t> own;
  for (const auto& [id, bytes] : held_)
    if (id.num_parts == num_parts && id.part == own_part) own.push_back(id.step);
  if (own.size() < num_kept) return;
  auto oldest = own[own.size() - num_kept];
  std::erase_if(held_, [&](const auto& each) { return each.first.step < oldest; });
}

void sharded_copies::take(FullyShardedDataParallel& sharded, const optim::optimizer_state& optimizer) {
  require_one_division(sharded.copies_ != nullptr, "sharded_copies::take");
  finish_exchange();
  auto& group = sharded.group();
  int num_members = group.size(), rank = group.rank();
  part_id own{sharded.step(), num_members, rank};
  sharded.sharded_->values().take_writes();
  auto bytes = detail::pack(held_now(*sharded.sharded_, sharded.module(), optimizer));
  held_[own] = bytes;
  keep_newest(num_members, rank);
  if (num_members == 1) return;
  auto next = (rank + 1) % num_members, before = (rank + num_members - 1) % num_members;
  auto size = tensor::zeros({1}, dtype::i64).to(group.device());
  auto sent = group.send(numbers({bytes.num_elements()}).to(group.device()), next, by_waiter);
  group.receive(size, before, by_waiter).wait();
  sent.wait();
  coming_id_ = {own.step, num_members, before};
  coming_ = tensor::empty({size.to(device{}).values<std::int64_t>()[0]}, dtype::u8, group.device());
  group_ = sharded.kept_group_;
  sent_ = group.send(bytes.to(group.device()), next);
  received_ = group.receive(coming_, before);
  if (group_.use_count() == 0) finish_exchange();  // the caller's: it may be gone at the next call
}

tensor sharded_copies::moved(communicator& group, const part_id& which, int from, int to) {
  auto is_sender = group.rank() == from;
  auto bytes = is_sender ? held_.at(which).to(group.device()) : tensor();
  auto size = numbers({is_sender ? bytes.num_elements() : 0}).to(group.device());
  auto move = [&](tensor& x) {
    if (to == everyone) return group.broadcast(x, from, by_waiter).wait();
    (is_sender ? group.send(x, to, by_waiter) : group.receive(x, from, by_waiter)).wait();
  };
  move(size);
  if (!is_sender)
    bytes = tensor::empty({size.to(device{}).values<std::int64_t>()[0]}, dtype::u8, group.device());
  move(bytes);
  return bytes.to(device{});
}

std::optional<std::uint64_t> sharded_copies::restore(FullyShardedDataParallel& sharded,
                                                     optim::optimizer_state& optimizer) {
  require_one_division(sharded.copies_ != nullptr, "sharded_copies::restore");
  end_exchange();
  auto& group = sharded.group();
  int rank = group.rank();
  std::vector<std::int64_t> own_list;
  for (const auto& [id, bytes] : held_)
    own_list.insert(own_list.end(), {static_cast<std::int64_t>(id.step), id.num_parts, id.part});
  auto state = detail::newest_complete_state(known_to_all(numbers(own_list), group));
  if (!state) {
    held_.clear();
    return {};
  }
  // What came after it is not what comes now.
  std::erase_if(held_, [&](const auto& each) { return std::cmp_greater(each.first.step, state->step); });
  auto num_parts = static_cast<int>(state->holders.size());
  auto& model = *sharded.sharded_;
  auto own = held_now(model, sharded.module(), optimizer);
  filled_copies copies(own);
  for (int part = 0; part < num_parts; ++part) {
    part_id id{static_cast<std::uint64_t>(state->step), num_parts, part};
    auto holder = state->holders[static_cast<std::size_t>(part)];
    if (num_parts != group.size()) {
      copies.add(moved(group, id, holder, everyone));
    } else if (holder == part) {
      if (part == rank) copies.add(held_.at(id));
    } else if (rank == holder || rank == part) {
      auto bytes = moved(group, id, holder, part);
      if (rank == part) copies.add(held_[id] = bytes);
    }
  }
  const auto& filled = copies.all();
  model.values().begin_step();
  for (std::size_t i = 0; i < own.size(); ++i) own[i].value.copy_from(filled[i].value);
  for (const auto* flat : model.flats())
    for (const auto& each : flat->parameters()) each.target->mark_changed();
  model.values().end_step();
  sharded.set_step(static_cast<std::uint64_t>(state->step));
  return sharded.step();
}

std::vector<std::uint64_t> sharded_copies::steps() const {
  std::set<std::uint64_t> found;
  for (const auto& [id, bytes] : held_) found.insert(id.step);
  return {found.begin(), found.end()};
}

std::size_t sharded_copies::size_bytes() const {
  std::size_t sum = coming_.defined() ? coming_.size_bytes() : 0;
  for (const auto& [id, bytes] : held_) sum += bytes.size_bytes();
  return sum;
}

}  // namespace troupe
