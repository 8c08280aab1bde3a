#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/config.hpp>
#include <caf/detail/message_data.hpp>
#include <caf/detail/tuple_vals.hpp>
#include <caf/error.hpp>
#include <caf/rtti_pair.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/type_erased_value.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#if CAF_VERSION < 1700 || CAF_VERSION >= 1800
#error \
    "message_storage.hpp replaces a template of CAF 0.17, to save time to build. For other versions include <caf/allowed_unsafe_message_type.hpp> in its place"
#endif

namespace troupe::actors::actor {

/// What CAF asks a message that holds one value of a type of this project, in a mailbox or on its own: the
/// same for all types. Such messages go over the wire by `encode_message`, never through CAF's serializers.
template <class Base>
class message_storage : public Base {
 public:
  message_storage(caf::rtti_pair type, std::uint32_t token, void* content)
      : type_(type), token_(token), content_(content) {}
  message_storage(const message_storage& other, void* content)
      : Base(other), type_(other.type_), token_(other.token_), content_(content) {}

  std::size_t size() const noexcept override { return 1; }
  const void* get(std::size_t) const noexcept override { return content_; }
  void* get_mutable(std::size_t) override { return content_; }
  caf::rtti_pair type(std::size_t) const noexcept override { return type_; }
  std::uint32_t type_token() const noexcept override { return token_; }
  /// The name of the type.
  std::string stringify(std::size_t) const override;
  using Base::copy;
  /// \throws std::logic_error: messages are copied whole
  caf::type_erased_value_ptr copy(std::size_t) const override;
  /// actor_error::failed: nothing is read or written.
  caf::error load(std::size_t, caf::deserializer&) override;
  caf::error save(std::size_t, caf::serializer&) const override;

 private:
  caf::rtti_pair type_;
  std::uint32_t token_;
  void* content_;
};

extern template class message_storage<caf::detail::message_data>;
extern template class message_storage<caf::type_erased_tuple>;

}  // namespace troupe::actors::actor

namespace caf::detail {

/// For messages of one value whose type is marked by CAF_ALLOW_UNSAFE_MESSAGE_TYPE. CAF's own template makes
/// some 60 functions for each such type in each source that sends it: a fifth of the time to compile the
/// actors.
template <class Base, class T>
requires allowed_unsafe_message_type<T>::value class tuple_vals_impl<Base, T>
    : public troupe::actors::actor::message_storage<Base> {
 public:
  using super = message_data;
  using data_type = std::tuple<T>;

  tuple_vals_impl(const tuple_vals_impl& other)
      : troupe::actors::actor::message_storage<Base>(other, &data_), data_(other.data_) {}
  template <class From>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the requirement excludes copies
  requires(!std::is_base_of_v<tuple_vals_impl, std::decay_t<From>>) tuple_vals_impl(From&& content)
      : troupe::actors::actor::message_storage<Base>(make_rtti_pair<T>(), make_type_token<T>(), &data_),
        data_(std::forward<From>(content)) {}

  data_type& data() { return data_; }
  const data_type& data() const { return data_; }

 private:
  data_type data_;
};

}  // namespace caf::detail
