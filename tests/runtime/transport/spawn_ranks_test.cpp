#include "support/processes/spawn_ranks.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

using namespace troupe::testing;

TEST_CASE("a rank that posts twice under a slot is told so, and what it posted first stays") {
  spawn_ranks(
      2,
      [](test_rank& self) {
        if (self.rank() == 0) {
          self.post(1, std::array{std::byte{1}});
          self.post(2);
          try {
            self.post(1, std::array{std::byte{2}});
          } catch (const std::runtime_error& problem) {
            expect(
                std::string(problem.what()).find("slot than 1, which rank 0 has posted") != std::string::npos,
                "slot and rank");
            self.post(3);
          }
        }
        self.wait_for(0, 3);
        expect(self.wait_for(0, 1) == std::vector<std::byte>{std::byte{1}}, "the first bytes");
      },
      std::chrono::seconds(60));
}
