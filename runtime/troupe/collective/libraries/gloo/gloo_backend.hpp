#pragma once
#include <gloo/context.h>

#include <map>
#include <memory>

#include "troupe/collective/libraries/call_thread.hpp"
#include "troupe/collective/libraries/gloo/gloo_mesh.hpp"
#include "troupe/collective/libraries/library_backend.hpp"

namespace troupe::collective {

/// The calls of a group over gloo, whose functions block: one thread runs the collectives, and one for each
/// peer and direction runs sends or receives.
class gloo_backend final : public library_backend {
 public:
  gloo_backend(group_description group, store& keys, std::shared_ptr<gloo_mesh> mesh);
  ~gloo_backend() override;

  std::string_view name() const override { return "gloo"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;

 private:
  void close(const collective_error& why) noexcept override;
  void carry_out(const collective_operation& what, std::uint64_t sequence);
  bool has_ended(const call_thread::blocking_call& given, const collective_operation& what,
                 std::uint64_t sequence);
  void agree(const collective_operation& what, std::uint64_t sequence);
  void send(const collective_operation& what);
  void receive(const collective_operation& what, std::uint64_t sequence);
  call_thread& thread_for(const collective_operation& what);

  std::shared_ptr<gloo_mesh> mesh_;
  std::shared_ptr<::gloo::Context> context_;  // the same
  std::map<std::pair<collective_kind, int>, call_thread> threads_;
};

}  // namespace troupe::collective

/// The collectives of gloo, one function for each. They block, and throw gloo::Exception.
namespace troupe::collective::gloo_calls {

using context = std::shared_ptr<::gloo::Context>;

void all_reduce(const context& group, const collective_operation& what);
void reduce_scatter(const context& group, const collective_operation& what);
void reduce(const context& group, const collective_operation& what);
void all_gather(const context& group, const collective_operation& what);
void broadcast(const context& group, const collective_operation& what);
void gather(const context& group, const collective_operation& what);
void scatter(const context& group, const collective_operation& what);
void all_to_all(const context& group, const collective_operation& what);

}  // namespace troupe::collective::gloo_calls
