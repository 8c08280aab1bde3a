#include "job_environment.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <optional>

#include "troupe/config/environment/launch_environment.hpp"

using namespace troupe;

namespace {

/// Sets or unsets a variable of this process, and restores the old value at the end of the scope.
class changed_variable {
 public:
  changed_variable(const char* name, const char* value) : name_(name), before_(process_environment()(name)) {
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~changed_variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  changed_variable(const changed_variable&) = delete;
  changed_variable& operator=(const changed_variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

job_identity job_of(int world_size) { return {"job", "00", "127.0.0.1", 1, world_size, 7}; }

bool has(const std::vector<std::string>& environment, const std::string& entry) {
  return std::ranges::count(environment, entry) == 1;
}

bool names(const std::vector<std::string>& environment, const std::string& name) {
  return std::ranges::any_of(environment, [&](const auto& each) { return each.starts_with(name + "="); });
}

}  // namespace

TEST_CASE("a process of a job gets its rank variables added to the launcher's environment") {
  changed_variable of_user("TROUPE_TEST_OF_USER", "kept"), rank("RANK", "17");
  auto made = job_environment(job_of(3), {2, 5});
  CHECK(has(made, "TROUPE_TEST_OF_USER=kept"));
  CHECK(has(made, "RANK=2"));
  CHECK_FALSE(has(made, "RANK=17"));
  CHECK(has(made, "WORLD_SIZE=3"));
  CHECK(has(made, "TROUPE_INCARNATION=5"));
  CHECK(has(made, "TROUPE_MAX_RESTARTS=7"));
  CHECK(has(made, "TROUPE_EVENTS_FD="));
  CHECK(has(job_environment(job_of(3), {2, 5, 9}), "TROUPE_EVENTS_FD=9"));
}

TEST_CASE("waiting OpenMP threads of a process soon sleep, unless the environment sets another policy") {
  changed_variable policy("OMP_WAIT_POLICY", nullptr), spins("GOMP_SPINCOUNT", nullptr);
  CHECK(has(job_environment(job_of(2), {0, 0}), "GOMP_SPINCOUNT=1000"));
  CHECK(has(job_environment(job_of(1), {0, 0}), "GOMP_SPINCOUNT=1000"));
  {
    changed_variable chosen("OMP_WAIT_POLICY", "active");
    CHECK_FALSE(names(job_environment(job_of(2), {0, 0}), "GOMP_SPINCOUNT"));
  }
  changed_variable chosen("GOMP_SPINCOUNT", "7");
  CHECK(has(job_environment(job_of(2), {0, 0}), "GOMP_SPINCOUNT=7"));
}
