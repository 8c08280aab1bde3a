#include "troupe/actor/message_storage.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <typeinfo>

#include "troupe/actor/actor_error.hpp"

namespace troupe {
namespace {

std::string name_of(const caf::rtti_pair& type) {
  auto free_text = [](char* text) { std::free(text); };
  int status = 0;
  std::unique_ptr<char, decltype(free_text)> name(
      abi::__cxa_demangle(type.second->name(), nullptr, nullptr, &status), free_text);
  return name ? name.get() : type.second->name();
}

caf::error not_serializable(const caf::rtti_pair& type) {
  return make_error(actor_error::failed,
                    "a message of type " + name_of(type) + " cannot pass CAF's serializers");
}

}  // namespace

template <class Base>
std::string message_storage<Base>::stringify(std::size_t) const {
  return name_of(type_);
}

template <class Base>
caf::type_erased_value_ptr message_storage<Base>::copy(std::size_t) const {
  throw std::logic_error("a message of type " + name_of(type_) + " is copied whole, not its value alone");
}

template <class Base>
caf::error message_storage<Base>::load(std::size_t, caf::deserializer&) {
  return not_serializable(type_);
}

template <class Base>
caf::error message_storage<Base>::save(std::size_t, caf::serializer&) const {
  return not_serializable(type_);
}

template class message_storage<caf::detail::message_data>;
template class message_storage<caf::type_erased_tuple>;

}  // namespace troupe
