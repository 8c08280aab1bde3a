#include "troupe/gpt2_weights.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/safetensors/safetensors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::int64_t vocabulary = 11, context = 6, width = 4;

nn::gpt_options tiny(bool tied = true) {
  return {.vocabulary = vocabulary,
          .context = context,
          .features = width,
          .num_layers = 2,
          .num_heads = 2,
          .tie_weights = tied};
}

/// Element i is (i + shift) / 64, which every floating dtype holds exactly.
tensor counting(shape extents, float shift) {
  auto made = tensor::empty(std::move(extents));
  auto values = made.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) + shift) / 64;
  return made;
}

/// A file of two blocks as it is published.
std::vector<named_tensor> published_file(const std::string& prefix = "") {
  std::vector<named_tensor> tensors{{prefix + "wte.weight", counting({vocabulary, width}, 1)},
                                    {prefix + "wpe.weight", counting({context, width}, 2)},
                                    {prefix + "ln_f.weight", counting({width}, 3)},
                                    {prefix + "ln_f.bias", counting({width}, 4)}};
  for (int layer = 0; layer < 2; ++layer) {
    auto add = [&](const std::string& name, shape extents) {
      tensors.push_back({prefix + "h." + std::to_string(layer) + "." + name,
                         counting(std::move(extents), static_cast<float>(tensors.size()))});
    };
    for (std::string norm : {"ln_1", "ln_2"}) {
      add(norm + ".weight", {width});
      add(norm + ".bias", {width});
    }
    add("attn.bias", {1, 1, context, context});
    add("attn.masked_bias", {});
    add("attn.c_attn.weight", {width, 3 * width});
    add("attn.c_attn.bias", {3 * width});
    add("attn.c_proj.weight", {width, width});
    add("attn.c_proj.bias", {width});
    add("mlp.c_fc.weight", {width, 4 * width});
    add("mlp.c_fc.bias", {4 * width});
    add("mlp.c_proj.weight", {4 * width, width});
    add("mlp.c_proj.bias", {width});
  }
  return tensors;
}

tensor find(const std::vector<named_tensor>& all, const std::string& name) {
  for (const auto& each : all)
    if (each.name == name) return each.value;
  return {};
}

const tensor tokens = tensor::from(std::vector<std::int64_t>{3, 1, 4, 1, 5, 9}, {1, context});

struct in_a_folder {
  temp_folder folder;
  std::filesystem::path file = folder.path() / "model.safetensors";

  void write(const std::vector<named_tensor>& tensors) { write_safetensors(file, tensors); }
  /// What reading into a fresh model complains of.
  std::string complaint(const std::vector<named_tensor>& tensors, bool tied = true) {
    write(tensors);
    nn::GPT model(tiny(tied));
    model.materialize(1);
    nn::GPT untouched(tiny(tied));
    untouched.materialize(1);
    try {
      read_gpt2_weights(file, model);
    } catch (const bad_input& problem) {
      CHECK(same_bits(model.state_dict(), untouched.state_dict()));
      return problem.what();
    }
    return {};
  }
};

}  // namespace

TEST_CASE("published weights are loaded by name, projections transposed, masks skipped") {
  in_a_folder here;
  auto file = published_file();
  here.write(file);
  nn::GPT model(tiny());
  model.materialize(1);
  read_gpt2_weights(here.file, model);
  auto state = model.state_dict();
  CHECK(same_bits(find(state, "wte.weight"), find(file, "wte.weight")));
  CHECK(same_bits(find(state, "h.1.ln_2.bias"), find(file, "h.1.ln_2.bias")));
  for (std::string name :
       {"h.0.attn.c_attn.weight", "h.1.attn.c_proj.weight", "h.1.mlp.c_fc.weight", "h.0.mlp.c_proj.weight"}) {
    auto from = find(file, name), to = find(state, name);
    auto in = from.shape()[0], out = from.shape()[1];
    REQUIRE(to.shape() == shape{out, in});
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < out; ++o)
        CHECK(to.values<float>()[static_cast<std::size_t>(o * in + i)] ==
              from.values<float>()[static_cast<std::size_t>(i * out + o)]);
  }
}

TEST_CASE("names with a prefix, pipeline layers and half-width files give the same weights") {
  in_a_folder here;
  here.write(published_file());
  nn::GPT expected(tiny());
  expected.materialize(1);
  read_gpt2_weights(here.file, expected);
  auto logits = expected.forward({tokens}).value;

  auto check = [&](const std::vector<named_tensor>& file) {
    here.write(file);
    nn::GPT whole(tiny());
    auto layers = nn::gpt_layers(tiny()), untied = nn::gpt_layers(tiny(false));
    for (nn::Module* model : std::vector<nn::Module*>{&whole, &layers, &untied}) {
      model->materialize(2);
      model->forward({tokens});  // conversions that are kept must not outlive the old weights
      read_gpt2_weights(here.file, *model);
      CHECK(same_bits(model->forward({tokens}).value, logits));
    }
  };
  check(published_file("transformer."));
  for (auto type : {dtype::f16, dtype::bf16}) {
    auto narrow = published_file();
    for (auto& each : narrow) each.value = cast(each.value, type);
    here.write(narrow);
    nn::GPT model(tiny());
    model.materialize(1);
    read_gpt2_weights(here.file, model);
    auto rounded = cast(cast(find(published_file(), "h.0.ln_1.weight"), type), dtype::f32);
    CHECK(same_bits(find(model.state_dict(), "h.0.ln_1.weight"), rounded));
  }
  auto with_head = published_file("transformer.");
  with_head.push_back({"lm_head.weight", find(with_head, "transformer.wte.weight")});
  check(with_head);
}

TEST_CASE("written weights are read back with the same bits and have the published layout") {
  in_a_folder here;
  for (bool tied : {true, false}) {
    auto layers = nn::gpt_layers(tiny(tied));
    layers.materialize(5);
    write_gpt2_weights(here.file, layers);
    auto written = read_safetensors(here.file);
    CHECK(written.metadata.at("format") == "pt");
    CHECK(have_gpt2_layout(written.tensors));
    CHECK(find(written.tensors, "lm_head.weight").defined() == !tied);
    CHECK(find(written.tensors, "h.1.mlp.c_fc.weight").shape() == shape{width, 4 * width});
    CHECK(written.tensors.size() == 4 + 2 * 12 + (tied ? 0 : 1));
    auto again = nn::gpt_layers(tiny(tied));
    again.materialize(6);
    read_gpt2_weights(here.file, again);
    CHECK(same_bits(again.state_dict(), layers.state_dict()));
    CHECK_FALSE(have_gpt2_layout(layers.state_dict()));
  }
}

TEST_CASE("tensors that are missing, unknown or of another shape are all named, and nothing is changed") {
  in_a_folder here;
  auto file = published_file();
  std::erase_if(file, [](const auto& each) {
    return each.name == "wpe.weight" || each.name == "h.1.attn.c_attn.bias";
  });
  file.push_back({"h.7.ln_1.weight", tensor::zeros({width})});
  for (auto& each : file) {
    if (each.name == "wte.weight") each.value = tensor::zeros({50257, width});
    if (each.name == "h.0.mlp.c_fc.weight") each.value = each.value.reshape({4 * width, width});
    if (each.name == "ln_f.bias") each.value = tensor::zeros({width}, dtype::i64);
  }
  auto text = here.complaint(file);
  CHECK_THAT(text, ContainsSubstring("missing: h.1.attn.c_attn.bias, wpe.weight") &&
                       ContainsSubstring("not in the model: h.7.ln_1.weight") &&
                       ContainsSubstring("wte.weight is f32[50257, 4], expected f32[11, 4]") &&
                       ContainsSubstring("h.0.mlp.c_fc.weight is f32[16, 4], expected f32[4, 16]") &&
                       ContainsSubstring("ln_f.bias is i64[4]") && ContainsSubstring("model.safetensors"));
}

TEST_CASE("names with the prefixes of wrappers and projections as in a Linear give the same weights") {
  in_a_folder here;
  here.write(published_file());
  nn::GPT expected(tiny());
  expected.materialize(1);
  read_gpt2_weights(here.file, expected);
  for (std::string prefix :
       {"_orig_mod.transformer.", "module.", "_orig_mod.module.transformer.", "model."}) {
    auto file = published_file(prefix);
    // As nanoGPT has them.
    for (auto& each : file)
      for (auto part : {"attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"})
        if (each.name.ends_with(part)) each.value = transpose(each.value);
    file.push_back({prefix.substr(0, prefix.find("transformer.")) + "lm_head.weight",
                    find(file, prefix + "wte.weight")});
    here.write(file);
    nn::GPT model(tiny());
    model.materialize(2);
    read_gpt2_weights(here.file, model);
    CHECK(same_bits(model.state_dict(), expected.state_dict()));
  }
}

TEST_CASE("f64 weights are converted, and a mask of any dtype is skipped") {
  in_a_folder here;
  here.write(published_file());
  // As a header of the format with a tensor of F64.
  std::string header = R"({"ln_f.bias":{"dtype":"F64","shape":[4],"data_offsets":[0,32]}})";
  auto whole = here.folder.path() / "f64.safetensors";
  std::array<double, width> values{0.5, -1, 2, 1e-3};
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), sizeof values);
  std::ofstream(whole, std::ios::binary) << bytes;
  auto file = published_file();
  std::erase_if(file, [](const auto& each) { return each.name == "ln_f.bias"; });
  here.write(file);
  std::ofstream(here.folder.path() / "x.safetensors.index.json")
      << R"({"weight_map":{"ln_f.bias":"f64.safetensors")" <<
      [&] {
        std::string rest;
        for (const auto& each : file) rest += ",\"" + each.name + "\":\"model.safetensors\"";
        return rest;
      }()
      << "}}";
  nn::GPT model(tiny());
  model.materialize(1);
  read_gpt2_weights(here.folder.path(), model);
  CHECK(find(model.state_dict(), "ln_f.bias").values<float>()[3] == 1e-3F);
  CHECK(same_bits(find(model.state_dict(), "wte.weight"), find(file, "wte.weight")));
}

TEST_CASE("one reason is given for many tensors that do not fit, and not all of their names") {
  in_a_folder here;
  auto file = published_file("module.");
  file.push_back({"module.h.2.ln_1.weight", tensor::zeros({width})});
  CHECK_THAT(here.complaint(file), ContainsSubstring("the file has 3 blocks, the model 2"));
  file = published_file("module.");
  for (auto& each : file)
    if (each.name.ends_with("wte.weight")) each.value = tensor::zeros({vocabulary + 5, width});
  CHECK_THAT(here.complaint(file),
             ContainsSubstring("the file's vocabulary has 16 tokens, the model's 11: if it was padded"));
  file = published_file();
  std::erase_if(file, [](const auto& each) { return each.name.ends_with(".bias"); });
  CHECK_THAT(here.complaint(file),
             ContainsSubstring("the file has no biases") && ContainsSubstring("and 5 more"));
  file = published_file("blocks.");
  auto text = here.complaint(file);
  CHECK_THAT(text, ContainsSubstring("the file is of another model") &&
                       !ContainsSubstring("blocks, the model") &&
                       ContainsSubstring("not in the model: blocks.") && ContainsSubstring("and 20 more"));
}

TEST_CASE("a separate head is refused by a tied model, and so are duplicate names") {
  in_a_folder here;
  auto file = published_file();
  file.push_back({"lm_head.weight", counting({vocabulary, width}, 9)});
  CHECK_THAT(here.complaint(file), ContainsSubstring("the model needs gpt_options::tie_weights = false") &&
                                       ContainsSubstring("not in the model: lm_head.weight"));
  CHECK(here.complaint(file, false).empty());
  file = published_file();
  file.push_back({"transformer.wte.weight", file.front().value});
  CHECK_THAT(here.complaint(file), ContainsSubstring("wte.weight twice"));
  nn::GPT model(tiny());
  model.materialize(1);
  CHECK_THROWS_AS(read_gpt2_weights(here.folder.path() / "absent", model), bad_input);
}
