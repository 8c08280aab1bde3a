#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "kernels/cuda_emulation/planted_mistakes.hpp"

using troupe::emulation::copy_time;
using troupe::emulation::execution_options;
using troupe::emulation::thread_order;
using troupe::testing::planted_mistake;
using troupe::testing::planted_mistakes;

namespace {

std::vector<execution_options> all_options() {
  std::vector<execution_options> all;
  for (auto order : {thread_order::ascending, thread_order::descending, thread_order::shuffled,
                     thread_order::warp_by_warp})
    for (auto copies : {copy_time::late, copy_time::early}) all.push_back({order, copies});
  return all;
}

enum class outcome { right_result, wrong_result, aborted };
struct finding {
  outcome how = outcome::right_result;
  std::string text;  ///< its standard error
};

[[noreturn]] void run_as_child(const planted_mistake& which, const execution_options& options, int errors) {
  dup2(errors, STDERR_FILENO);
  std::signal(SIGABRT, SIG_DFL);  // not Catch2's
  _exit(which.run(true, options) ? 0 : 1);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t count; (count = read(from, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(count));
  return text;
}

/// What the kernel with the mistake does, in a process of its own.
finding find(const planted_mistake& which, const execution_options& options) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) run_as_child(which, options, ends[1]);
  close(ends[1]);
  auto text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status)) return {outcome::aborted, text};
  return {WEXITSTATUS(status) == 0 ? outcome::right_result : outcome::wrong_result, text};
}

bool is_found(const planted_mistake& which, const finding& found) {
  // The address sanitizer ends the process before the emulation or the result tells.
  if (found.text.find("ERROR: AddressSanitizer") != std::string::npos) return true;
  if (which.text.empty()) return found.how == outcome::wrong_result;
  return found.how == outcome::aborted && found.text.find(which.text) != std::string::npos;
}

}  // namespace

TEST_CASE("emulated kernels without a mistake are correct in every order") {
  for (const auto& which : planted_mistakes())
    for (const auto& options : all_options()) {
      CAPTURE(which.name, static_cast<int>(options.order), static_cast<int>(options.copies));
      CHECK(which.run(false, options));
    }
}

TEST_CASE("each mistake planted in an emulated kernel is found in some order") {
  for (const auto& which : planted_mistakes()) {
    bool found = false;
    for (const auto& options : all_options()) {
      auto one = find(which, options);
      INFO(which.name << ": " << one.text);
      // A mistake may stay hidden in an order, but shows in no other way than the one it is known for.
      CHECK((one.how == outcome::right_result || is_found(which, one)));
      found = found || is_found(which, one);
    }
    INFO(which.name);
    CHECK(found);
  }
}

TEST_CASE("an unknown order of execution is refused") {
  REQUIRE_THROWS_AS(troupe::emulation::order_named("backwards"), std::exception);
}
