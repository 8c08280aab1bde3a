#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "troupe/transport/transport.hpp"

namespace troupe::testing {

/// A transport that only records its calls. For one thread.
class recording_transport : public transport::transport {
 public:
  struct control_frame {
    int to_rank = 0;
    std::uint64_t generation = 0;
    std::vector<std::byte> body;
  };
  struct sent_tensor {
    int to_rank = 0;
    troupe::transport::tensor_tag tag;
    tensor value;
  };
  explicit recording_transport(int rank = 0) : rank_(rank) {}

  int rank() const override { return rank_; }
  /// The address contains the generation.
  troupe::transport::process_address begin_generation(std::uint64_t generation) override {
    begun.push_back(generation);
    return address_of(rank_, generation);
  }
  void connect(std::uint64_t generation,
               const std::map<int, troupe::transport::process_address>& peers) override {
    connected.emplace_back(generation, peers);
  }
  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override {
    frames.push_back({to_rank, generation, {body.begin(), body.end()}});
  }
  void send_tensor(int to_rank, const troupe::transport::tensor_tag& tag, tensor value) override {
    before_tensor(tag);
    tensors.push_back({to_rank, tag, std::move(value)});
  }
  tensor allocate_shared(shape extents, dtype type) override {
    shared.push_back(tensor::empty(std::move(extents), type));
    return shared.back();
  }
  troupe::transport::transport_statistics counters;  ///< what statistics() returns
  troupe::transport::transport_statistics statistics() const override { return counters; }

  static troupe::transport::process_address address_of(int rank, std::uint64_t generation) {
    return {{std::byte(rank)}, {std::byte(rank), std::byte(generation)}};
  }

  std::vector<std::uint64_t> begun;
  std::vector<std::pair<std::uint64_t, std::map<int, troupe::transport::process_address>>> connected;
  std::vector<control_frame> frames;
  std::vector<sent_tensor> tensors;
  std::vector<tensor> shared;  ///< tensors that allocate_shared returned
  /// Called before a tensor is recorded; may throw.
  std::function<void(const troupe::transport::tensor_tag&)> before_tensor =
      [](const troupe::transport::tensor_tag&) {};

 private:
  int rank_;
};

}  // namespace troupe::testing
