#include "troupe/transport/loopback_transport.hpp"

#include "troupe/transport/counters.hpp"
#include "troupe/transport/generation_gate.hpp"
#include "troupe/transport/require_sendable.hpp"
#include "troupe/transport/tensor_event.hpp"

namespace troupe::transport {
namespace {

class loopback_transport final : public transport {
 public:
  explicit loopback_transport(transport_events& events) : events_(events) {}

  int rank() const override { return 0; }

  process_address begin_generation(std::uint64_t generation) override {
    gate_.begin(generation);
    return {};
  }

  void connect(std::uint64_t generation, const std::map<int, process_address>&) override {
    gate_.open(generation);
  }

  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override {
    if (to_rank != rank()) return;
    auto& counted = counters_.with(to_rank);
    counted.count_sent_frame(body.size());
    counted.count_received_frame(body.size());
    events_.on_control(rank(), generation, body);
  }

  void send_tensor(int to_rank, const tensor_tag& tag, tensor value) override {
    require_sendable(value, to_rank == rank());
    if (tag.generation != gate_.current()) {
      ++counters_.stale_frames;
      return;
    }
    if (to_rank != rank() || !gate_.is_open()) return;
    auto& counted = counters_.with(to_rank);
    counted.count_sent(value);
    counted.count_completed(value);
    counted.count_received(value);
    emit_tensor(trace::trace_kind::send, tag, rank(), value.size_bytes());
    emit_tensor(trace::trace_kind::receive, tag, rank(), value.size_bytes());
    events_.on_tensor(rank(), tag, std::move(value));
  }

  transport_statistics statistics() const override { return counters_.read(); }

 private:
  transport_events& events_;
  generation_gate gate_;
  transport_counters counters_;
};

}  // namespace

std::unique_ptr<transport> make_loopback_transport(transport_events& events) {
  return std::make_unique<loopback_transport>(events);
}

}  // namespace troupe::transport
