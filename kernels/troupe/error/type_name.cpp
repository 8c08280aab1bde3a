#include "troupe/error/type_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace troupe {

std::string type_name(const std::type_info& type) {
  auto free_text = [](char* text) { std::free(text); };
  int status = 0;
  std::unique_ptr<char, decltype(free_text)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                  free_text);
  return name ? name.get() : type.name();
}

}  // namespace troupe
