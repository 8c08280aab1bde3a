#include "troupe/nn/sequential.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::nn {

std::string child_prefix(int index) { return std::to_string(index) + "."; }

void Sequential::push_back(std::shared_ptr<Module> child) {
  if (!child) throw_invalid("Sequential::push_back", "a module", "a null pointer");
  if (child->num_parameters() > 0 && std::ranges::find(children_, child) != children_.end())
    throw_invalid("Sequential::push_back", "each module with parameters once", "the same one twice");
  children_.push_back(std::move(child));
}

variable Sequential::forward(const variable& input) {
  auto value = input;
  for (const auto& child : children_) value = child->forward(value);
  return value;
}

std::shared_ptr<Module> Sequential::clone() const {
  auto copy = std::make_shared<Sequential>();
  for (const auto& child : children_) copy->push_back(child->clone());
  return copy;
}

void Sequential::materialize(std::uint64_t seed, const std::string& prefix) {
  for (int index = 0; index < size(); ++index)
    (*this)[index]->materialize(seed, prefix + child_prefix(index));
}

std::int64_t Sequential::num_parameters() const {
  std::int64_t sum = 0;
  for (const auto& child : children_) sum += child->num_parameters();
  return sum;
}

double Sequential::cost() const {
  double sum = 0;
  for (const auto& child : children_) sum += child->cost();
  return sum;
}

void Sequential::collect_parameters(const std::string& prefix, std::vector<named_parameter>& into) {
  for (int index = 0; index < size(); ++index)
    (*this)[index]->collect_parameters(prefix + child_prefix(index), into);
}

}  // namespace troupe::nn
