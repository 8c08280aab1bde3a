#include "troupe/pipeline/device_map.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "api/pipeline/planned_pipeline.hpp"
#include "support/bits.hpp"
#include "support/models/graph_models.hpp"
#include "support/random_tensor.hpp"
#include "support/temp_folder.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/norm.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/pipeline/pipeline.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t nested_width = 6, nested_labels = 3;

/// A block that is a chain within the model.
nn::Sequential nested_block() {
  return nn::Sequential(nn::Linear(nested_width, nested_width), nn::ReLU(), nn::Dropout(0.2));
}

/// "stem", "blocks" (a chain of chains "blocks.0" to "blocks.2"), "around" (a graph of "left", "right" and
/// "sum"), "head".
nn::Sequential nested_model() {
  nn::Sequential blocks(nested_block(), nested_block(), nested_block());
  nn::Graph around;
  auto x = around.input("x");
  auto left = around.add("left", nn::Linear(nested_width, nested_width), x);
  auto right = around.add("right", nn::Linear(nested_width, nested_width), x);
  around.output(around.add("sum", nn::Add(), left, right, x));
  nn::Sequential model;
  model.push_back("stem", nn::Linear(nested_width, nested_width));
  model.push_back("blocks", std::move(blocks));
  model.push_back("around", std::move(around));
  model.push_back("head", nn::Linear(nested_width, nested_labels));
  return model;
}

/// A layer with the weight of one before it.
class tied_by_user : public nn::module_of<tied_by_user> {
 public:
  explicit tied_by_user(std::string name) : weight_("weight", {nested_width, nested_width}, nullptr) {
    weight_.tied_to = std::move(name);
  }
  tied_by_user(const tied_by_user& other) : module_of(other), weight_(other.weight_) {}
  tied_by_user& operator=(const tied_by_user&) = delete;
  variable forward(const variable& input) override {
    return linear(input, tied_ ? *tied_ : weight_, nullptr);
  }
  void each_parameter(const parameter_visitor& visit) override {
    if (!tied_) visit(weight_);
  }
  void tie_weights(const weight_finder& find) override { tied_ = find(weight_.tied_to); }

 private:
  parameter weight_;
  std::shared_ptr<parameter> tied_;
};

std::vector<named_tensor> train_planned(const nn::Graph& model, planned_options options,
                                        std::int64_t inputs) {
  options.num_microbatches = 3;
  planned_pipeline pipeline(model, options);
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < 4; ++row) labels.push_back((row + static_cast<std::int64_t>(step)) % 3);
    pipeline.train(
        step, {random_tensor({4, inputs}, "samples " + std::to_string(step)), tensor::from(labels, {4})});
  }
  return pipeline.weights();
}

std::vector<named_tensor> trained_whole(const nn::Graph& model, std::int64_t inputs) {
  return train_planned(model, {.partition = {{0, model.size()}}}, inputs);
}

std::vector<named_tensor> trained_by(const nn::Graph& model, const DeviceMap& map, std::int64_t inputs) {
  auto placed = place_layers(model, map);
  auto num_devices = *std::ranges::max_element(placed.device_of_stage) + 1;
  return train_planned(placed.model,
                       {.partition = placed.partition,
                        .kind = schedule_kind::one_f_one_b,
                        .num_devices = num_devices,
                        .device_of_stage = placed.device_of_stage},
                       inputs);
}

std::string complaint_of(const nn::Graph& model, const DeviceMap& map) {
  try {
    place_layers(model, map);
  } catch (const bad_input& problem) {
    return problem.what();
  }
  return "none";
}

DeviceMap read_text(const std::string& text) {
  temp_folder folder;
  auto file = folder.path() / "map.yaml";
  std::ofstream(file) << text;
  return DeviceMap::read(file);
}

}  // namespace

TEST_CASE("layers that follow each other on one device are a stage, and a device may have several") {
  auto placed = place_layers(
      nested_model(), DeviceMap().layer("head", 0).layers("blocks", 1).layer("stem", 0).layer("around", 1));
  CHECK(placed.model.names() == std::vector<std::string>{"stem", "blocks", "around", "head"});
  CHECK(placed.partition == std::vector<stage_range>{{0, 1}, {1, 3}, {3, 4}});
  CHECK(placed.device_of_stage == std::vector{0, 1, 0});
}

TEST_CASE("layers within a chain or graph of the model are placed apart where the map names them") {
  auto map =
      DeviceMap().layer("stem", 0).layers("blocks.0..2", 1).layer("blocks.2.0", 2).layers("blocks.2.1..3", 2);
  map.layer("around.left", 0).layer("around.right", 1).layer("around.sum", 1).layer("head", 0);
  auto placed = place_layers(nested_model(), map);
  CHECK(placed.model.names() == std::vector<std::string>{"stem", "blocks.0", "blocks.1", "blocks.2.0",
                                                         "blocks.2.1", "blocks.2.2", "around.left",
                                                         "around.right", "around.sum", "head"});
  CHECK(placed.device_of_stage == std::vector{0, 1, 2, 0, 1, 0});
  // Names and initial values of parameters are those of the whole model.
  nn::Graph whole(nested_model());
  CHECK(same_bits(trained_by(whole, map, nested_width), trained_whole(whole, nested_width)));
}

TEST_CASE("every placement of a graph with branches and skip connections gives the same bits") {
  auto check = [](const nn::Graph& model, std::int64_t inputs, const std::vector<DeviceMap>& maps) {
    auto whole = trained_whole(model, inputs);
    for (const auto& map : maps) {
      CAPTURE(map.to_yaml());
      CHECK(same_bits(trained_by(model, map, inputs), whole));
    }
  };
  auto residual = DeviceMap().layer("image", 0).layer("stem", 0).layer("block1", 1).layer("downsample", 0);
  residual.layer("block2", 2).layer("pool", 0).layer("flat", 0).layer("head", 0);
  check(residual_network(3), 36, {residual});
  auto unet = DeviceMap().layer("image", 0).layer("down1", 0).layer("down1_relu", 0).layer("pool1", 1);
  unet.layer("down2", 1).layer("down2_relu", 1).layer("pool2", 0).layer("bottom", 0).layer("bottom_relu", 0);
  unet.layer("grow2", 1).layer("join2", 1).layer("up2", 1).layer("up2_relu", 1).layer("grow1", 0);
  unet.layer("join1", 0)
      .layer("up1", 0)
      .layer("up1_relu", 0)
      .layer("pool", 0)
      .layer("flat", 0)
      .layer("head", 0);
  check(small_unet(3), 64, {unet});
}

TEST_CASE("a layer whose only weight is tied may be a stage of its own") {
  nn::Sequential model;
  model.push_back("first", nn::Linear(nested_width, nested_width));
  model.push_back("mid", nn::Linear(nested_width, nested_width));
  model.push_back("tied", nn::TiedLinear(nested_width, nested_width, "first.weight"));
  model.push_back("head", nn::Linear(nested_width, nested_labels));
  nn::Graph whole(model);
  auto map = DeviceMap().layer("first", 0).layer("mid", 1).layer("tied", 2).layer("head", 0);
  CHECK(same_bits(trained_by(whole, map, nested_width), trained_whole(whole, nested_width)));
}

TEST_CASE("a map is read from a file and written to one") {
  auto map = read_text("# devices\nversion: 1\nembed: 0\nblocks.0..6: 1\n\"head\": 0\n");
  CHECK(map.entries() == std::vector<placed_layers>{{"embed", 0}, {"blocks.0..6", 1}, {"head", 0}});
  CHECK(map.file().filename() == "map.yaml");
  CHECK(map.to_yaml() == "version: 1\nembed: 0\nblocks.0..6: 1\nhead: 0\n");
  CHECK(read_text(map.to_yaml()).entries() == map.entries());
}

TEST_CASE("a file without the version of its format, or with another one, is no map") {
  auto expect = [](const std::string& text, auto... parts) {
    CAPTURE(text);
    CHECK_THROWS_MATCHES(read_text(text), bad_input,
                         MessageMatches((ContainsSubstring("map.yaml") && ... && ContainsSubstring(parts))));
  };
  expect("embed: 0\nhead: 1\n", "map.yaml:1: expected the line 'version: 1'", "Add it");
  expect("version: 2\nembed: 0\n", "map.yaml:1: expected version 1", "got '2'");
  expect("embed: 0\nversion: one\n", "map.yaml:2: expected version 1", "got 'one'");
  expect("version: 1\n", "the device map is empty");
  expect("version: 1\nversion: 1\n", "'version' is there twice");
  expect("", "the device map is empty");
  CHECK_THROWS_MATCHES(DeviceMap().layer("version", 0).to_yaml(), bad_input,
                       MessageMatches(ContainsSubstring("a layer with the name 'version'")));
}

TEST_CASE("a map is read again with any names") {
  DeviceMap map;
  for (const auto* name : {"a: b", "# c", "null", "'d'", "\"e\\", "- f", "[g]", "0", "true", "h\ni", "*j"})
    map.layer(name, 0);
  CHECK(read_text(map.to_yaml()).entries() == map.entries());
}

TEST_CASE("a pipeline has at least one microbatch") {
  CHECK_THROWS_MATCHES(Pipeline(nested_model()).microbatches(0), bad_input,
                       MessageMatches(ContainsSubstring("0 microbatches. Give at least 1")));
}

TEST_CASE("maps that cannot be are refused with what to do") {
  nn::Graph model(nested_model());
  auto expect = [&model](const DeviceMap& map, auto... parts) {
    CHECK_THAT(complaint_of(model, map), (ContainsSubstring("") && ... && ContainsSubstring(parts)));
  };
  expect(DeviceMap().layer("stem", 0), "no device for blocks, around, head");
  expect(DeviceMap().layer("steam", 0), "no layer 'steam'");
  expect(DeviceMap().layers("blocks.0..4", 0), "no layer 'blocks.3'", "blocks.0, blocks.1, blocks.2");
  expect(DeviceMap().layer("stem.weight", 0), "no layer 'stem.weight'",
         "layer stem cannot be taken apart: it is no nn::Sequential");
  expect(DeviceMap().layer("blocks", 0).layer("blocks.1", 1),
         "blocks.1 is placed by 'blocks' (device 0) and by 'blocks.1' (device 1)");
  expect(DeviceMap()
             .layer("stem", 0)
             .layers("blocks.0..2", 0)
             .layer("blocks.2.0", 0)
             .layer("blocks.2.1", 1)
             .layer("blocks.2.2", 1)
             .layer("around", 0)
             .layer("head", 0),
         "stage of blocks.2.1, blocks.2.2 would have no parameters");
  CHECK_THROWS_MATCHES(DeviceMap().layer("blocks.0..2", 0), bad_input,
                       MessageMatches(ContainsSubstring("'blocks.0..2' is a range. Use layers()")));
  CHECK_THROWS_MATCHES(DeviceMap().layers("blocks.2..0", 0), bad_input,
                       MessageMatches(ContainsSubstring("is no range")));
  CHECK_THROWS_MATCHES(DeviceMap().layer("head", -2), bad_input,
                       MessageMatches(ContainsSubstring("'head' is placed on device -2")));
}

TEST_CASE("a chain with tied weights within is placed as a whole") {
  nn::Sequential within(nn::Linear(nested_width, nested_width),
                        nn::TiedLinear(nested_width, nested_width, "0.weight"));
  nn::Sequential model;
  model.push_back("within", std::move(within));
  model.push_back("head", nn::Linear(nested_width, nested_labels));
  CHECK_THAT(complaint_of(model, DeviceMap().layers("within.0..2", 0).layer("head", 1)),
             ContainsSubstring("layer within cannot be taken apart") && ContainsSubstring("as a whole"));
  CHECK(complaint_of(model, DeviceMap().layer("within", 0).layer("head", 1)) == "none");
}

TEST_CASE("a graph that uses a value several times, which goes around it too, is placed as a whole") {
  nn::Graph around;
  auto x = around.input("x");
  auto left = around.add("left", nn::Linear(nested_width, nested_width), x);
  auto right = around.add("right", nn::Linear(nested_width, nested_width), x);
  around.output(around.add("sum", nn::Add(), left, right, x));
  nn::Graph model;
  auto stem = model.add("stem", nn::Linear(nested_width, nested_width), model.input("samples"));
  auto inner = model.add("around", around, stem);
  auto join = model.add("join", nn::Add(), stem, inner);
  model.output(model.add("head", nn::Linear(nested_width, nested_labels), join));
  // Taken apart it would be as good a model, but with gradients that are added in another order.
  auto apart = DeviceMap().layer("stem", 0).layer("around", 1).layer("around.left", 1).layer("head", 1);
  CHECK_THAT(
      complaint_of(model, apart),
      ContainsSubstring("layer around cannot be taken apart: gradients would be added in another order"));
  auto whole = DeviceMap().layer("stem", 0).layer("around", 1).layer("join", 1).layer("head", 1);
  CHECK(same_bits(trained_by(model, whole, nested_width), trained_whole(model, nested_width)));
}

TEST_CASE("a class derived from a chain, which may compute otherwise, is placed as a whole") {
  struct twice : nn::Sequential {
    using nn::Sequential::Sequential;
    std::shared_ptr<nn::Module> clone() const override { return std::make_shared<twice>(*this); }
    variable forward(const variable& input) override {
      return nn::Sequential::forward(nn::Sequential::forward(input));
    }
  };
  nn::Sequential model;
  model.push_back("twice", std::make_shared<twice>(nn::Linear(nested_width, nested_width)));
  model.push_back("head", nn::Linear(nested_width, nested_labels));
  CHECK_THAT(complaint_of(model, DeviceMap().layer("twice.0", 0).layer("head", 1)),
             ContainsSubstring("no layer 'twice.0'") &&
                 ContainsSubstring("layer twice cannot be taken apart: it is no nn::Sequential"));
}

TEST_CASE("a user's layer with a tied weight keeps what is around it together") {
  nn::Sequential within(nn::Linear(nested_width, nested_width), tied_by_user("0.weight"));
  nn::Sequential model;
  model.push_back("within", std::move(within));
  model.push_back("head", nn::Linear(nested_width, nested_labels));
  CHECK_THAT(complaint_of(model, DeviceMap().layers("within.0..2", 0).layer("head", 1)),
             ContainsSubstring("layer within cannot be taken apart: a tied weight"));
}

TEST_CASE("errors of a map in a file name the file and the line") {
  auto expect = [](const std::string& text, auto... parts) {
    CHECK_THROWS_MATCHES(read_text(text), bad_input,
                         MessageMatches((ContainsSubstring("map.yaml") && ... && ContainsSubstring(parts))));
  };
  expect("version: 1\nembed: 0\nhead: gpu\n", ":3:", "'head'", "the number of a device", "'gpu'");
  expect("version: 1\nembed: -1\n", ":2:", "from 0 on, got '-1'");
  expect("version: 1\nembed: 0\nembed: 1\n", ":3:", "twice");
  expect("version: 1\nblocks.3..1: 0\n", ":2:", "is no range");
  expect("version: 1\nembed: [0, 1]\n", ":2:", "expected one value");
  expect("- embed\n", ":1:", "a list");
  expect("", "is empty", "blocks.0..6: 1");
  CHECK_THAT(complaint_of(nested_model(), read_text("version: 1\nstem: 0\n")),
             ContainsSubstring("map.yaml: device map: no device for blocks"));
  CHECK_THROWS_MATCHES(DeviceMap::read("/nowhere/map.yaml"), bad_input,
                       MessageMatches(ContainsSubstring("cannot read the device map '/nowhere/map.yaml'")));
}

TEST_CASE("the last of device map, cuts and number of stages counts") {
  auto map = DeviceMap().layer("stem", 1).layers("blocks", 0).layer("around", 0).layer("head", 1);
  Pipeline pipeline(nested_model());
  pipeline.cut_before({"head"}).device_map(map);
  CHECK(pipeline.stages() == 3);
  CHECK(pipeline.cuts_text().empty());
  CHECK(pipeline.device_of_stage() == std::vector{1, 0, 1});
  CHECK(pipeline.partition(3) == std::vector<stage_range>{{0, 1}, {1, 3}, {3, 4}});
  pipeline.stages(2);
  CHECK_FALSE(pipeline.device_map());
  CHECK(pipeline.device_of_stage().empty());
  CHECK(pipeline.partition(2).size() == 2);
  pipeline.device_map(map).cut_before({"around"});
  CHECK_FALSE(pipeline.device_map());
  CHECK(pipeline.partition(2) == std::vector<stage_range>{{0, 2}, {2, 4}});
}

TEST_CASE("an automatic map places the layers as they are balanced") {
  cost_profile profile{.microbatch_samples = 1};
  for (const auto* name : {"stem", "blocks", "around", "head"})
    profile.layers.push_back({.name = name, .forward_s = 1, .parameter_bytes = 1});
  profile.layers[1].forward_s = 3;
  auto map = DeviceMap::automatic(profile, {.devices = {{}, {}, {}}});
  CHECK(map.to_yaml() == "version: 1\nstem: 0\nblocks: 1\naround: 2\nhead: 2\n");
  CHECK(place_layers(nested_model(), map).device_of_stage == std::vector{0, 1, 2});
}
