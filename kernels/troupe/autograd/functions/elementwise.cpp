#include "troupe/ops/elementwise.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

/// Shape and dtype of an operand before broadcasting and promotion, to which its gradient is reduced.
struct operand_form {
  shape extents;
  dtype type = dtype::f32;
  bool is_wanted = false;

  explicit operand_form(const variable& from)
      : extents(from.value.shape()), type(from.value.dtype()), is_wanted(from.requires_gradient()) {}

  tensor shaped(const tensor& gradient) const {
    auto reduced = gradient.shape() == extents ? gradient : reduce_to_shape(gradient, extents);
    return cast(reduced, type);
  }
};

class sum_operation : public operation {
 public:
  sum_operation(const variable& a, const variable& b, bool subtracts) : a_(a), b_(b), subtracts_(subtracts) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {a_.is_wanted ? a_.shaped(dy) : tensor(),
            b_.is_wanted ? b_.shaped(subtracts_ ? negate(dy) : dy) : tensor()};
  }

 private:
  operand_form a_, b_;
  bool subtracts_;
};

class product_operation : public operation {
 public:
  product_operation(const variable& a, const variable& b)
      : a_(a), b_(b), a_value_(a.value), b_value_(b.value) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {a_.is_wanted ? a_.shaped(multiply(dy, b_value_)) : tensor(),
            b_.is_wanted ? b_.shaped(multiply(dy, a_value_)) : tensor()};
  }

 private:
  operand_form a_, b_;
  tensor a_value_, b_value_;
};

class quotient_operation : public operation {
 public:
  quotient_operation(const variable& a, const variable& b, tensor y)
      : a_(a), b_(b), b_value_(b.value), y_(std::move(y)) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    auto da = divide(dy, b_value_);
    return {a_.is_wanted ? a_.shaped(da) : tensor(),
            b_.is_wanted ? b_.shaped(negate(multiply(da, y_))) : tensor()};
  }

 private:
  operand_form a_, b_;
  tensor b_value_, y_;
};

}  // namespace

variable add(const variable& a, const variable& b) {
  auto y = add(a.value, b.value);
  if (!would_record({&a, &b})) return {std::move(y)};
  return record(std::move(y), {a, b}, std::make_unique<sum_operation>(a, b, false));
}

variable subtract(const variable& a, const variable& b) {
  return record(subtract(a.value, b.value), {a, b}, std::make_unique<sum_operation>(a, b, true));
}

variable multiply(const variable& a, const variable& b) {
  return record(multiply(a.value, b.value), {a, b}, std::make_unique<product_operation>(a, b));
}

variable divide(const variable& a, const variable& b) {
  auto y = divide(a.value, b.value);
  return record(y, {a, b}, std::make_unique<quotient_operation>(a, b, y));
}

}  // namespace troupe
