#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// The named children of a Sequential or a Graph, in the order in which they were added. A copy clones them.
class child_list {
 public:
  child_list() = default;
  child_list(const child_list& other);
  child_list& operator=(const child_list& other) { return *this = child_list(other); }
  child_list(child_list&&) = default;
  child_list& operator=(child_list&&) = default;
  ~child_list() = default;

  /// Adds a child, and ties its weights to those of the children before it. Throws std::invalid_argument,
  /// beginning with `function`, for a null pointer, for parameters that the list contains already, for a
  /// name that another child has, and for a TiedLinear whose weight no child before it has.
  void add(const char* function, std::string name, std::shared_ptr<Module> child);

  int size() const { return static_cast<int>(children_.size()); }
  /// Throws std::out_of_range outside [0, size), as name_of does.
  const std::shared_ptr<Module>& operator[](int index) const {
    return children_.at(static_cast<std::size_t>(index));
  }
  const std::string& name_of(int index) const { return names_.at(static_cast<std::size_t>(index)); }
  std::string prefix_of(int index) const { return name_of(index) + "."; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::shared_ptr<Module>>& modules() const { return children_; }
  void visit(const Module::child_visitor& visitor) const;

 private:
  void require_new(const char* function, Module& newcomer, const std::string& name) const;
  void tie(Module& newcomer) const;

  std::vector<std::string> names_;
  std::vector<std::shared_ptr<Module>> children_;  ///< in parallel with names_
};

}  // namespace troupe::nn
