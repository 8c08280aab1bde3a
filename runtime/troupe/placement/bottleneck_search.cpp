#include "troupe/placement/bottleneck_search.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace troupe::placement {
namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();
/// Pieces that one pass may look at: a second.
constexpr double most_steps = 5e8;
/// Half a GiB.
constexpr double most_words = 1 << 26;
constexpr std::size_t word_bits = 64;
/// Sums in another order differ by less.
constexpr double rounding = 1 + 1e-9;

/// The ends that one begin allows; none if first > last.
struct end_range {
  std::size_t first = 1, last = 0;
};

/// Exact. A state says how many devices of each kind are used, as the digits of a number. For given limits it
/// has the set of pieces at which the chunks of these devices can end, all of them within the limits. Since
/// costs grow with the end, the ends that a begin allows are a range. Where more is left than the devices
/// that are not used can take, the state is not followed. The limits are bisected, and each bound moves on to
/// a cost that some chunk has, until the bounds meet.
class bottleneck_search {
 public:
  bottleneck_search(const std::vector<std::size_t>& devices_of_kind, std::size_t num_pieces,
                    const search_costs& costs)
      : costs_(costs), devices_of_kind_(devices_of_kind), num_pieces_(num_pieces) {
    for (auto count : devices_of_kind_) {
      digit_.push_back(num_states_);
      num_states_ *= count + 1;
      num_devices_ += count;
    }
    num_words_ = num_pieces_ / word_bits + 1;
    ends_.resize(devices_of_kind_.size() * num_devices_ * num_pieces_);
    reached_.resize(num_states_ * num_words_);
  }

  std::vector<found_chunk> run() {
    if (find_least_cost()) find_largest_share();
    return best_;
  }

 private:
  bool find_least_cost() {
    auto below = 0.0;
    for (auto step = costs_.step; !try_limits(std::max(below, costs_.start + step), 0); step *= 2)
      if (below = next_above_; below == no_bound) return false;
    auto least = best_cost();
    while (below < least) {
      auto middle = below + (least - below) / 2;
      if (try_limits(middle < least ? middle : below, 0))
        least = best_cost();
      else
        below = next_above_;
    }
    return true;
  }

  void find_largest_share() {
    auto least_cost = best_cost();
    auto capacity = 0.0;
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind)
      capacity += static_cast<double>(devices_of_kind_[kind]) * costs_.capacity(kind, 1);
    // No smallest share is above the mean.
    auto above = costs_.amount_before.back() / capacity * rounding;
    auto largest = best_share();
    while (largest < above) {
      auto middle = largest + (above - largest) / 2;
      if (try_limits(least_cost, middle > largest ? middle : above))
        largest = best_share();
      else
        above = next_below_;
    }
  }

  /// Keeps the chunks if there are some of which none costs more than `most` or has a smaller share.
  bool try_limits(double most, double least_share) {
    most_ = most;
    least_share_ = least_share;
    find_ends();
    if (!reach_all()) return false;
    trace();
    return true;
  }

  void find_ends() {
    next_above_ = no_bound;
    next_below_ = 0;
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind)
      for (std::size_t position = 0; position < num_devices_; ++position)
        for (std::size_t begin = 0; begin < num_pieces_; ++begin)
          ends_of(kind, position, begin) = ends_from(kind, position, begin);
  }

  end_range ends_from(std::size_t kind, std::size_t position, std::size_t begin) {
    auto is_within = [&](std::size_t end) { return costs_.cost(begin, end, kind, position) <= most_; };
    auto is_too_small = [&](std::size_t end) { return share(begin, end, kind) < least_share_; };
    auto after = first_without(begin + 1, is_within), first = first_without(begin + 1, is_too_small);
    if (after <= num_pieces_) next_above_ = std::min(next_above_, costs_.cost(begin, after, kind, position));
    if (first > begin + 1) next_below_ = std::max(next_below_, share(begin, first - 1, kind));
    return {first, after - 1};
  }

  /// The first end from `first` on for which this does not hold; num_pieces + 1 if it holds for all.
  template <class Predicate>
  std::size_t first_without(std::size_t first, Predicate holds) const {
    auto after = num_pieces_ + 1;
    while (first < after) {
      auto middle = first + (after - first) / 2;
      if (holds(middle))
        first = middle + 1;
      else
        after = middle;
    }
    return first;
  }

  bool reach_all() {
    std::ranges::fill(reached_, 0);
    reached_[0] = 1;
    for (std::size_t state = 0; state + 1 < num_states_; ++state) reach_from(state);
    return is_reached(num_states_ - 1, num_pieces_);
  }

  void reach_from(std::size_t state) {
    const auto* words = &reached_[state * num_words_];
    if (std::all_of(words, words + num_words_, [](std::uint64_t word) { return word == 0; })) return;
    auto position = num_used(state);
    auto least_amount = costs_.amount_before.back() / rounding - capacity_left(state);
    usable_.clear();
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind)
      if (num_used(state, kind) < devices_of_kind_[kind]) usable_.push_back(kind);
    for (std::size_t word = 0; word < num_words_; ++word)
      for (auto bits = words[word]; bits != 0; bits &= bits - 1) {
        auto begin = word * word_bits + static_cast<std::size_t>(std::countr_zero(bits));
        if (begin == num_pieces_ || costs_.amount_before[begin] < least_amount) continue;
        for (auto kind : usable_) reach(state + digit_[kind], ends_of(kind, position, begin));
      }
  }

  /// What the devices that are not used can take.
  double capacity_left(std::size_t state) const {
    double sum = 0;
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind)
      if (auto count = devices_of_kind_[kind] - num_used(state, kind); count > 0)
        sum += static_cast<double>(count) * costs_.capacity(kind, most_);
    return sum;
  }

  void reach(std::size_t state, const end_range& ends) {
    if (ends.first > ends.last) return;
    constexpr auto all = ~std::uint64_t{0};
    auto* words = &reached_[state * num_words_];
    auto first = ends.first / word_bits, last = ends.last / word_bits;
    auto from = all << ends.first % word_bits, to = all >> (word_bits - 1 - ends.last % word_bits);
    for (auto word = first; word <= last; ++word)
      words[word] |= (word == first ? from : all) & (word == last ? to : all);
  }

  /// From the end: takes the first kind, then the earliest begin.
  void trace() {
    best_.clear();
    auto state = num_states_ - 1, end = num_pieces_;
    while (end > 0) {
      best_.push_back(last_chunk(state, end));
      end = best_.back().begin;
      state -= digit_[best_.back().kind];
    }
    std::ranges::reverse(best_);
  }

  found_chunk last_chunk(std::size_t state, std::size_t end) const {
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind) {
      if (num_used(state, kind) == 0) continue;
      auto before = state - digit_[kind];
      auto position = num_used(before);
      for (std::size_t begin = 0; begin < end; ++begin) {
        const auto& ends = ends_of(kind, position, begin);
        if (is_reached(before, begin) && ends.first <= end && end <= ends.last) return {begin, end, kind};
      }
    }
    throw std::logic_error("[bottleneck_search] expected a chunk that ends at piece " + std::to_string(end) +
                           ", got none");
  }

  double best_cost() const {
    double largest = 0;
    for (std::size_t position = 0; position < best_.size(); ++position)
      largest = std::max(
          largest, costs_.cost(best_[position].begin, best_[position].end, best_[position].kind, position));
    return largest;
  }
  double best_share() const {
    auto smallest = no_bound;
    for (const auto& [begin, end, kind] : best_) smallest = std::min(smallest, share(begin, end, kind));
    return smallest;
  }
  double share(std::size_t begin, std::size_t end, std::size_t kind) const {
    return (costs_.amount_before[end] - costs_.amount_before[begin]) / costs_.capacity(kind, 1);
  }

  std::size_t num_used(std::size_t state, std::size_t kind) const {
    return state / digit_[kind] % (devices_of_kind_[kind] + 1);
  }
  std::size_t num_used(std::size_t state) const {
    std::size_t sum = 0;
    for (std::size_t kind = 0; kind < devices_of_kind_.size(); ++kind) sum += num_used(state, kind);
    return sum;
  }
  bool is_reached(std::size_t state, std::size_t piece) const {
    return (reached_[state * num_words_ + piece / word_bits] >> piece % word_bits & 1) != 0;
  }
  end_range& ends_of(std::size_t kind, std::size_t position, std::size_t begin) {
    return ends_[(kind * num_devices_ + position) * num_pieces_ + begin];
  }
  const end_range& ends_of(std::size_t kind, std::size_t position, std::size_t begin) const {
    return ends_[(kind * num_devices_ + position) * num_pieces_ + begin];
  }

  // constant after construction
  const search_costs& costs_;
  const std::vector<std::size_t>& devices_of_kind_;
  std::size_t num_pieces_ = 0, num_devices_ = 0, num_states_ = 1, num_words_ = 0;
  std::vector<std::size_t> digit_;  // [kind] of what one device adds to a state

  // of the limits that are tried
  double most_ = 0, least_share_ = 0;
  double next_above_ = 0;               // the least cost above most_
  double next_below_ = 0;               // the largest share below least_share_
  std::vector<end_range> ends_;         // [kind][position][begin]
  std::vector<std::uint64_t> reached_;  // [state], a bit for each piece

  std::vector<std::size_t> usable_;  // kinds, in reach_from

  std::vector<found_chunk> best_;
};

}  // namespace

bool can_search(const std::vector<std::size_t>& devices_of_kind, std::size_t num_pieces) {
  double num_states = 1;
  for (auto count : devices_of_kind) num_states *= static_cast<double>(count + 1);
  auto pieces = static_cast<double>(num_pieces);
  auto words = num_states * (pieces / word_bits + 1);
  return words <= most_words &&
         num_states * static_cast<double>(devices_of_kind.size()) * pieces <= most_steps;
}

std::vector<found_chunk> least_bottleneck(const std::vector<std::size_t>& devices_of_kind,
                                          std::size_t num_pieces, const search_costs& costs) {
  return bottleneck_search(devices_of_kind, num_pieces, costs).run();
}

}  // namespace troupe::placement
