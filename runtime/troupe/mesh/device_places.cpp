#include "troupe/mesh/device_places.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>

#include "troupe/error/errors.hpp"

namespace troupe::mesh {
namespace {

constexpr int most_gpus = 1024;

[[noreturn]] void refuse(std::string_view text) {
  throw bad_input(
      "expected cpu, cuda (each device a GPU of its own), cuda:N (that GPU of the process), cuda:N..M (these "
      "in "
      "turn), or several of them with commas between, got '" +
      std::string(text) + "'");
}

/// The whole text as the number of a GPU.
int number_in(std::string_view text, std::string_view whole) {
  int number = 0;
  const auto* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stop != end || text.empty() || number < 0 || number >= most_gpus)
    refuse(whole);
  return number;
}

}  // namespace

device_places device_places::from_string(std::string_view text) {
  device_places read;
  read.entries_.clear();
  for (std::size_t first = 0; first <= text.size();) {
    auto comma = std::min(text.find(',', first), text.size());
    auto word = text.substr(first, comma - first);
    first = comma + 1;
    constexpr std::string_view numbered = "cuda:", range = "..";
    if (word == "cpu") {
      read.entries_.push_back({});
    } else if (word == "cuda") {
      read.entries_.push_back({device::kind::cuda});
    } else if (word.starts_with(numbered)) {
      auto numbers = word.substr(numbered.size());
      auto dots = numbers.find(range);
      auto begin = number_in(numbers.substr(0, dots), text);
      auto last =
          dots == std::string_view::npos ? begin : number_in(numbers.substr(dots + range.size()), text);
      if (last < begin) refuse(text);
      for (int gpu = begin; gpu <= last; ++gpu) read.entries_.push_back({device::kind::cuda, gpu});
    } else {
      refuse(text);
    }
  }
  return read;
}

bool device_places::has_gpus() const {
  return std::ranges::any_of(entries_, [](const entry& each) { return each.kind == device::kind::cuda; });
}

bool device_places::has_cpus() const {
  return std::ranges::any_of(entries_, [](const entry& each) { return each.kind == device::kind::cpu; });
}

bool device_places::counts_from_local_rank() const {
  return std::ranges::any_of(entries_,
                             [](const entry& each) { return each.kind == device::kind::cuda && !each.gpu; });
}

const device_places::entry& device_places::entry_of(device_id which) const {
  return entries_[static_cast<std::size_t>(which.number) % entries_.size()];
}

device device_places::of(device_id which, int local_rank, int num_devices) const {
  const auto& found = entry_of(which);
  if (found.kind == device::kind::cpu) return {};
  return {found.kind, found.gpu.value_or(local_rank * num_devices + which.number % num_devices)};
}

std::vector<device> device_places::gpus_of_process(int local_rank, int num_devices) const {
  std::set<int> numbers;
  for (const auto& each : entries_) {
    if (each.kind == device::kind::cpu) continue;
    if (each.gpu)
      numbers.insert(*each.gpu);
    else
      for (int k = 0; k < num_devices; ++k) numbers.insert(local_rank * num_devices + k);
  }
  std::vector<device> gpus;
  for (int number : numbers) gpus.push_back({device::kind::cuda, number});
  return gpus;
}

}  // namespace troupe::mesh
