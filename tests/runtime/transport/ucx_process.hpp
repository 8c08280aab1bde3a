#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "event_recorder.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "troupe/transport/data_plane/memory_sharing.hpp"
#include "troupe/transport/tensor_header.hpp"
#include "troupe/transport/ucx_transport/ucx_transport.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::testing {

inline std::vector<std::byte> test_secret(int seed = 0) {
  return std::vector<std::byte>(32, static_cast<std::byte>(seed + 1));
}

inline transport::ucx_transport_options test_options(int rank) {
  transport::ucx_transport_options options;
  options.rank = rank;
  options.secret = test_secret();
  return options;
}

/// Parts of the address of a data plane.
inline transport::receiver_nonce nonce_in(const transport::process_address& address) {
  transport::receiver_nonce nonce;
  std::copy_n(address.data.begin(), nonce.size(), nonce.begin());
  return nonce;
}
inline std::span<const std::byte> worker_address_in(const transport::process_address& address) {
  return std::span(address.data).subspan(sizeof(transport::receiver_nonce) + transport::heap_address_bytes);
}

/// A tensor of bytes that only this seed has.
inline tensor pattern(std::size_t size_bytes, std::uint64_t seed) {
  auto made = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  auto state = seed * 0x9E3779B97F4A7C15 + 1;
  for (auto& byte : made.values<std::uint8_t>()) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return made;
}

inline bool same_bytes(const tensor& left, const tensor& right) {
  return left.dtype() == right.dtype() && left.shape() == right.shape() &&
         std::ranges::equal(left.bytes(), right.bytes());
}

/// A UCX transport in a process of spawn_ranks. The job's rank need not be that of the process: a process may
/// replace another.
class ucx_process {
 public:
  ucx_process(test_rank& self, const transport::ucx_transport_options& options)
      : self_(self), link_(make_ucx_transport(options, events)) {}
  explicit ucx_process(test_rank& self) : ucx_process(self, test_options(self.rank())) {}

  transport::transport& link() { return *link_; }

  transport::process_address begin(std::uint64_t generation) {
    auto address = link_->begin_generation(generation);
    self_.post(slot(generation), wire::encode(std::pair(address.control, address.data)));
    return address;
  }
  /// `processes[rank]` is the process that has this rank now.
  void connect(std::uint64_t generation, const std::vector<int>& processes) {
    std::map<int, transport::process_address> peers;
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
      peers[static_cast<int>(rank)] = address_of(processes[rank], generation);
    link_->connect(generation, peers);
  }
  transport::process_address address_of(int process, std::uint64_t generation) {
    auto [control, data] = wire::decode<std::pair<std::vector<std::byte>, std::vector<std::byte>>>(
        self_.wait_for(process, slot(generation)));
    return {control, data};
  }
  void join(std::uint64_t generation, const std::vector<int>& processes) {
    begin(generation);
    connect(generation, processes);
  }
  /// Joins with all processes, each with the rank of its process.
  void join_all(std::uint64_t generation = 1) {
    std::vector<int> processes;
    for (int rank = 0; rank < self_.size(); ++rank) processes.push_back(rank);
    join(generation, processes);
  }

  event_recorder events;

 private:
  static int slot(std::uint64_t generation) { return 1000 + static_cast<int>(generation); }

  test_rank& self_;
  std::unique_ptr<transport::transport> link_;
};

}  // namespace troupe::testing
