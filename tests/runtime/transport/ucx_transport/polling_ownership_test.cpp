#include "troupe/transport/ucx_transport/polling_ownership.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/transport/transport.hpp"

using troupe::transport::polling_ownership;

namespace {

struct idle_waiter final : troupe::transport::tensor_waiter {
  bool take(int, const troupe::transport::tensor_tag&, troupe::tensor&) override { return false; }
  bool waits() const override { return false; }
};

}  // namespace

TEST_CASE("one waiter owns polling until it releases it") {
  polling_ownership ownership;
  idle_waiter first, second;
  CHECK_FALSE(ownership.is_owner_polling());
  CHECK(ownership.acquire(first));
  CHECK(ownership.acquire(first));
  CHECK_FALSE(ownership.acquire(second));
  CHECK(ownership.is_owner(first));
  CHECK(ownership.is_owner_polling());
  ownership.release();
  CHECK_FALSE(ownership.is_owner_polling());
  CHECK(ownership.acquire(second));
}

TEST_CASE("the transport's thread watches the owner of polling, or is woken by the next one") {
  polling_ownership ownership;
  idle_waiter waiter;
  CHECK_FALSE(ownership.must_wake_watcher());  // it has not slept yet
  CHECK_FALSE(ownership.needs_watching());
  ownership.acquire(waiter);
  CHECK(ownership.must_wake_watcher());
  CHECK_FALSE(ownership.must_wake_watcher());
  CHECK(ownership.needs_watching());
  CHECK_FALSE(ownership.must_wake_watcher());
  ownership.release();
  CHECK(ownership.needs_watching());  // another turn may follow soon
  ownership.acquire(waiter);
  ownership.release();
  CHECK_FALSE(ownership.must_wake_watcher());
  CHECK(ownership.needs_watching());
  CHECK_FALSE(ownership.needs_watching());
}
