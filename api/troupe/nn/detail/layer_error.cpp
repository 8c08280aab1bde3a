#include "troupe/nn/detail/layer_error.hpp"

#include <stdexcept>
#include <typeinfo>

#include "troupe/error/errors.hpp"

namespace troupe::nn::detail {
namespace {

/// The prefix of an error text that names a layer.
class names_layer {};

template <class Error>
class error_in_layer : public Error, public names_layer {
 public:
  using Error::Error;
};

/// Errors of derived classes may have more members than a text, and are rethrown unchanged.
template <class Error>
void rethrow_if(const std::exception& problem, const std::string& path) {
  if (typeid(problem) == typeid(Error))
    throw error_in_layer<Error>("in layer " + path + ": " + problem.what());
}

}  // namespace

void rethrow_in_layer(const std::string& path) {
  if (path.empty()) throw;
  try {
    throw;
  } catch (const names_layer&) {
    throw;
  } catch (const std::exception& problem) {
    rethrow_if<bad_input>(problem, path);
    rethrow_if<std::invalid_argument>(problem, path);
    rethrow_if<std::out_of_range>(problem, path);
    rethrow_if<std::logic_error>(problem, path);
    rethrow_if<std::runtime_error>(problem, path);
    throw;
  }
}

}  // namespace troupe::nn::detail
