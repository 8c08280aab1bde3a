#include "troupe/tensor/tensor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>

using troupe::tensor;

TEST_CASE("handles share elements, clones do not") {
  auto first = tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  auto shared = first;
  auto copy = first.clone();
  first.values<float>()[0] = 9;
  CHECK(shared.values<float>()[0] == 9);
  CHECK(copy.values<float>()[0] == 1);
}

TEST_CASE("rows and reshape are views of the same elements") {
  auto whole = tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  auto last = whole.rows(2, 1);
  CHECK(troupe::describe(last) == "f32[1, 2]");
  last.values<float>()[1] = 60;
  CHECK(whole.reshape({6}).values<float>()[5] == 60);
  CHECK_THROWS_AS(whole.rows(2, 2), std::invalid_argument);
  CHECK_THROWS_AS(whole.reshape({5}), std::invalid_argument);
}

TEST_CASE("a view keeps the storage alive") {
  tensor view;
  {
    auto whole = tensor::full({8, 4}, 3);
    view = whole.rows(7, 1);
  }
  CHECK(view.values<float>()[3] == 3);
}

TEST_CASE("elements are 64-byte aligned and read only as their own type") {
  auto numbers = tensor::empty({5}, troupe::dtype::i64);
  CHECK(reinterpret_cast<std::uintptr_t>(numbers.bytes().data()) % 64 == 0);
  CHECK(numbers.size_bytes() == 40);
  CHECK_THROWS_AS(numbers.values<float>(), std::invalid_argument);
  CHECK_THROWS_AS(tensor().values<float>(), std::invalid_argument);
  CHECK_THROWS_AS(tensor::from(std::vector<float>{1, 2}, {3}), std::invalid_argument);
}

TEST_CASE("copy_from wants the same shape and dtype") {
  auto target = tensor::zeros({2, 2});
  target.copy_from(tensor::full({2, 2}, 4));
  CHECK(target.values<float>()[3] == 4);
  CHECK_THROWS_AS(target.copy_from(tensor::full({4}, 4)), std::invalid_argument);
}

namespace {

/// Threes, when somebody asks for them.
class late_threes : public troupe::awaited_elements {
 public:
  explicit late_threes(tensor where) : where_(std::move(where)) { set_due(true); }
  int num_brought = 0;
  bool fails = false;

 protected:
  void bring() override {
    ++num_brought;
    if (fails) throw std::runtime_error("they are lost");
    set_due(false);
    std::ranges::fill(where_.values<float>(), 3.0F);
  }

 private:
  tensor where_;
};

}  // namespace

TEST_CASE("awaited elements are brought once, by whichever handle is used first") {
  auto ways = std::vector<std::function<float(const tensor&)>>{
      [](const tensor& x) { return x.values<float>()[0]; },
      [](const tensor& x) { return reinterpret_cast<const float*>(x.bytes().data())[0]; },
      [](const tensor& x) { return x.rows(1, 1).values<float>()[0]; },
      [](const tensor& x) { return x.reshape({4}).values<float>()[3]; },
      [](const tensor& x) { return x.clone().values<float>()[0]; }};
  for (const auto& first_of : ways) {
    auto plain = tensor::zeros({2, 2});
    auto what = std::make_shared<late_threes>(plain);
    auto handle = plain.awaiting(what);
    auto copy = handle;
    CHECK(what->num_brought == 0);
    CHECK(first_of(handle) == 3);
    CHECK(copy.values<float>()[1] == 3);
    CHECK(what->num_brought == 1);
    what->set_due(true);
    handle.fill_zero();
    CHECK(what->num_brought == 2);
    CHECK(plain.values<float>()[0] == 0);
  }
}

TEST_CASE("shape and dtype are there before awaited elements, which wait for nobody that does not ask") {
  auto what = std::make_shared<late_threes>(tensor::zeros({2, 2}));
  auto handle = tensor::zeros({2, 2}).awaiting(what);
  CHECK(handle.extents() == troupe::shape{2, 2});
  CHECK(handle.size_bytes() == 16);
  CHECK(what->num_brought == 0);
}

TEST_CASE("what keeps elements from coming is thrown to whoever uses them") {
  auto what = std::make_shared<late_threes>(tensor::zeros({2}));
  what->fails = true;
  auto handle = tensor::zeros({2}).awaiting(what);
  CHECK_THROWS_WITH(handle.values<float>(), "they are lost");
  auto target = tensor::zeros({2});
  CHECK_THROWS_WITH(target.copy_from(handle), "they are lost");
}
