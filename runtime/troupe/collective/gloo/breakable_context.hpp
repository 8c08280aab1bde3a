#pragma once
#include <gloo/transport/context.h>

#include <memory>
#include <mutex>
#include <set>

namespace troupe {

/// gloo's connections of one group, whose waits end when they are broken off. By itself gloo does not end the
/// wait for a message of which a part has come when its connection is closed on this side. Waits last until
/// then, or until what they wait for is there. Thread-safe.
class breakable_context final : public ::gloo::transport::Context {
 public:
  explicit breakable_context(std::shared_ptr<::gloo::transport::Context> connections);

  std::unique_ptr<::gloo::transport::Pair>& getPair(int member) override;
  std::unique_ptr<::gloo::transport::Pair>& createPair(int member) override;
  /// Throws gloo::IoException once connections are broken off, as all waits do.
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* bytes,
                                                                        std::size_t size) override;

  /// When it returns nothing comes over these connections any more. Idempotent.
  void break_off() noexcept;

 private:
  class buffer;
  void require_whole();
  void close_connections() noexcept;

  std::shared_ptr<::gloo::transport::Context> connections_;
  std::mutex mutex_;  // guards the next two
  bool is_broken_ = false;
  std::set<buffer*> buffers_;
};

}  // namespace troupe
