// Data that does not fit into memory: files of records, read as a stream, by a Trainer and in a loop of one's
// own. The loop stops within an epoch and goes on at the exact sample.
//   data --write points-0,points-1,points-2
//   data --points points-0,points-1,points-2 --epochs 4
//   data --points points-0,points-1,points-2 --loop position.safetensors
#include <cstdio>
#include <iostream>
#include <sstream>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

constexpr int points_per_file = 1000;

/// Points in the unit square as text, a line each: "x y", and 1 for those within a circle.
void write_points(const std::string& file, int seed) {
  record_writer writer(file);
  for (int i = 0; i < points_per_file; ++i) {
    auto x = (i * 7919 + seed) % 1000 / 1000.0, y = (i * 104729 + seed * 31) % 997 / 997.0;
    std::ostringstream line;
    line << x << ' ' << y << ' ' << ((x - 0.5) * (x - 0.5) + (y - 0.5) * (y - 0.5) < 0.16);
    writer.add(std::as_bytes(std::span(line.view())));
  }
  writer.finish();
}

/// A sample [2] and its label [] of a record's bytes.
labelled_samples decode(std::span<const std::byte> record) {
  std::istringstream line(std::string(reinterpret_cast<const char*>(record.data()), record.size()));
  float x = 0, y = 0;
  std::int64_t is_inside = 0;
  if (!(line >> x >> y >> is_inside)) throw bad_input("expected 'x y label', found '" + line.str() + "'");
  return {tensor::from(std::vector{x, y}, {2}), tensor::from(std::vector{is_inside}, {})};
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream all(list);
  for (std::string name; std::getline(all, name, ',');) names.push_back(name);
  return names;
}

dataset_ptr points_in(const std::vector<std::string>& files) {
  std::vector<dataset_ptr> shards;
  for (const auto& file : files) shards.push_back(record_dataset(file, {2}, decode));
  return stream_dataset(shards, {.shuffle_buffer = 500});
}

nn::Sequential network() {
  return nn::Sequential(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 2));
}

void train(const job_options& options, const dataset_ptr& points) {
  auto world = World::init(options);
  Trainer trainer(world, Pipeline(network(), options).optimizer(optim::Adam({.lr = options.learning_rate})));
  trainer.fit(points);
  auto accuracy = trainer.evaluate(points).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0) std::cout << "accuracy " << accuracy << "  weights " << weights << '\n';
}

/// Takes 20 batches, from where the loop before this one stopped.
void loop(const dataset_ptr& points, const std::filesystem::path& saved) {
  DataLoader loader(points, {.batch = 100, .num_workers = 2});
  if (std::filesystem::exists(saved))
    loader.resume(data_position::from_tensor(read_safetensors(saved).tensors.front().value));
  std::int64_t num_inside = 0;
  for (int batches = 0; batches < 20;)
    for (auto& [samples, labels] : loader) {
      for (auto label : labels.values<std::int64_t>()) num_inside += label;
      if (++batches == 20) break;
    }
  write_safetensors(saved, {{"position", loader.position().to_tensor()}});
  std::cout << num_inside << " inside, then " << loader.position().samples_done << " samples of epoch "
            << loader.epoch() << " are done\n";
}

void run(const job_options& options, const std::string& write, const std::string& points,
         const std::string& position) {
  if (points.empty() && !position.empty())
    throw bad_input("--loop takes batches of points: add --points FILES");
  if (write.empty() && points.empty())
    throw bad_input(
        "expected --write FILES, --points FILES or both, got neither. Write points first, for example "
        "--write points-0,points-1,points-2");
  bool trains = !points.empty() && position.empty();
  if (!trains)
    used_options::only({}).refuse_others(options,
                                         "a run with --loop or without --points, which trains nothing,");
  int seed = 0;
  for (const auto& file : names_in(write)) write_points(file, ++seed);
  if (trains) train(options, points_in(names_in(points)));
  if (!position.empty()) loop(points_in(names_in(points)), position);
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 100;
  defaults.microbatches = 4;
  defaults.learning_rate = 1e-2;
  std::string write, points, position;
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { run(options, write, points, position); },
      {{"--write", "files to write points to, separated by commas", &write},
       {"--points", "files to read points from", &points},
       {"--loop", "take 20 batches in a loop; keeps the position in this file", &position}},
      used_options::of_trainer());
}
