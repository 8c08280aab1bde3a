#include "troupe/program/device_memory.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "troupe/tensor/memory.hpp"

namespace troupe::program {
namespace {

constexpr std::int64_t version = 2;  // 1: without a place

template <class Held, class Visit>
void each_number_held(Held& held, Visit visit) {
  visit(held.current);
  visit(held.peak);
  for (auto& each : held.by_use) visit(each);
  for (auto& each : held.peak_by_use) visit(each);
}

/// Calls `visit` with each number, in the order in which they are sent.
template <class Reported, class Visit>
void each_number(Reported& reported, Visit visit) {
  visit(reported.device);
  visit(reported.rank);
  visit(reported.place.type);
  visit(reported.place.index);
  each_number_held(reported.held, visit);
  each_number_held(reported.on_host, visit);
  auto& process = reported.process;
  for (auto* each :
       {&process.allocated, &process.peak, &process.cached, &process.resident, &process.peak_resident})
    visit(*each);
}

}  // namespace

process_memory_use memory_of_process() {
  auto tensors = memory_of({});
  process_memory_use found{.allocated = tensors.current, .peak = tensors.peak, .cached = tensors.cached};
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    auto* into = key == "VmRSS:" ? &found.resident : key == "VmHWM:" ? &found.peak_resident : nullptr;
    if (std::uint64_t kib = 0; into && status >> kib) *into = kib * 1024;
    std::getline(status, key);
  }
  return found;
}

std::string place_text(device place) { return place.type == device::kind::cpu ? "cpu" : to_string(place); }

tensor to_tensor(const device_memory& reported) {
  std::vector<std::int64_t> numbers{version};
  each_number(reported, [&](auto number) { numbers.push_back(static_cast<std::int64_t>(number)); });
  return tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())});
}

device_memory device_memory_from(const tensor& sent) {
  device_memory reported;
  std::size_t expected = 1;
  each_number(reported, [&](auto&) { ++expected; });
  if (!sent.defined() || sent.dtype() != dtype::i64 ||
      static_cast<std::size_t>(sent.num_elements()) != expected || sent.values<std::int64_t>()[0] != version)
    throw std::runtime_error("memory of a device: expected " + std::to_string(expected) +
                             " numbers of version " + std::to_string(version) + ", got " + describe(sent));
  auto next = sent.values<std::int64_t>().begin() + 1;
  each_number(reported, [&](auto& number) {
    number = static_cast<std::remove_reference_t<decltype(number)>>(*next++);
  });
  return reported;
}

}  // namespace troupe::program
