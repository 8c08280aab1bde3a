#include "examine.hpp"
#include "troupe/data/formats/fashion_mnist.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::doctor {

findings examine_data(const std::filesystem::path& folder) {
  try {
    auto train = fashion_mnist(folder, data_split::train)->num_samples();
    auto test = fashion_mnist(folder, data_split::test)->num_samples();
    auto value = std::to_string(train) + " training and " + std::to_string(test) + " test images in " +
                 folder.string();
    return {{"data", "Fashion-MNIST", verdict::ok, value, ""}};
  } catch (const bad_input& problem) {
    return {{"data", "Fashion-MNIST", verdict::missing, problem.what(),
             "apt-get install --reinstall dataset-fashion-mnist"}};
  }
}

}  // namespace troupe::doctor
