#include "troupe/collective/roster.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe {

void roster::on_view(const std::vector<std::uint32_t>& incarnations) {
  {
    std::lock_guard lock(mutex_);
    for (std::size_t rank = 0; rank < entries_.size(); ++rank)
      entries_[rank].incarnation = incarnations.at(rank);
  }
  changed_.notify_all();
}

void roster::on_loss(int rank, const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    auto& lost = entries_.at(static_cast<std::size_t>(rank));
    if (lost.incarnation) lost.least = *lost.incarnation + 1;
    lost.loss = cause;
  }
  changed_.notify_all();
  tell(rank, cause);
}

void roster::doubt(int rank, std::uint32_t incarnation) {
  std::lock_guard lock(mutex_);
  auto& doubted = entries_.at(static_cast<std::size_t>(rank));
  if (doubted.least > incarnation) return;
  doubted.least = incarnation + 1;
  doubted.loss = "a group lost it";
}

void roster::on_end(const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    if (!ended_) ended_ = cause;
  }
  changed_.notify_all();
  tell(-1, cause);
}

void roster::listen(listener heard) {
  std::lock_guard lock(listening_);
  heard_ = std::move(heard);
}

void roster::tell(int rank, const std::string& cause) {
  std::lock_guard lock(listening_);
  if (heard_) heard_(rank, cause);
}

std::optional<std::vector<std::uint32_t>> roster::await(std::span<const int> ranks,
                                                        std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  bool came = changed_.wait_for(lock, timeout, [&] { return ended_ || all_live(ranks); });
  throw_if_ended();
  if (!came) return {};
  std::vector<std::uint32_t> incarnations;
  for (int rank : ranks) incarnations.push_back(*entries_.at(static_cast<std::size_t>(rank)).incarnation);
  return incarnations;
}

std::vector<int> roster::missing(std::span<const int> ranks) const {
  std::lock_guard lock(mutex_);
  std::vector<int> without;
  for (int rank : ranks)
    if (!entries_.at(static_cast<std::size_t>(rank)).lives()) without.push_back(rank);
  return without;
}

std::optional<std::string> roster::loss_of(int rank, std::uint32_t incarnation) const {
  std::lock_guard lock(mutex_);
  throw_if_ended();
  const auto& asked = entries_.at(static_cast<std::size_t>(rank));
  bool replaced = asked.incarnation && *asked.incarnation > incarnation;
  if (asked.least <= incarnation && !replaced) return {};
  return asked.loss;
}

bool roster::all_live(std::span<const int> ranks) const {
  return std::ranges::all_of(
      ranks, [this](int rank) { return entries_.at(static_cast<std::size_t>(rank)).lives(); });
}

void roster::throw_if_ended() const {
  if (ended_) throw job_failed(*ended_);
}

}  // namespace troupe
