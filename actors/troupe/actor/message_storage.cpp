#include "troupe/actor/message_storage.hpp"

#include <stdexcept>
#include <typeinfo>

#include "troupe/actor/actor_error.hpp"
#include "troupe/error/type_name.hpp"

namespace troupe::actors::actor {
namespace {

std::string name_of(const caf::rtti_pair& type) { return type_name(*type.second); }

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

}  // namespace troupe::actors::actor
