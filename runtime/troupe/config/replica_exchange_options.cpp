#include "troupe/config/replica_exchange_options.hpp"

#include "troupe/config/job_fields.hpp"

namespace troupe {

std::vector<given_exchange> given_in(const replica_exchange_options& options) {
  job_options job;
  static_cast<replica_exchange_options&>(job) = options;
  std::vector<given_exchange> given;
  for (auto name : replica_exchange_fields) {
    const auto& field = *config::find_job_field(name);
    if (auto value = field.text(job); value != field.text({}))
      given.push_back({name, std::move(value), field.option_name()});
  }
  return given;
}

}  // namespace troupe
