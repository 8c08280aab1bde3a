#pragma once
#include <filesystem>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe {

// GPT-2's weights under the names, and in the layout, of the files that are published for it (Hugging Face's
// GPT2Model): "wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight", ..., "ln_f.bias", each
// with or without "transformer." before it. The projections c_attn, c_proj and c_fc lie there as [in, out], a
// Linear's transpose. The output layer is the token embedding unless there is "lm_head.weight".

/// Copies the weights in a safetensors file of f32, bf16 or f16 into a materialized nn::GPT or
/// nn::gpt_layers. The causal masks "h.0.attn.bias" and "h.0.attn.masked_bias" are passed over. A model whose
/// output layer is not tied takes the token embedding where the file has no "lm_head.weight". Throws
/// bad_input, and changes nothing, naming all tensors that are missing, unknown or of another shape.
void read_gpt2_weights(const std::filesystem::path& file, nn::Module& model);

/// Writes a safetensors file that read_gpt2_weights and others read, names without "transformer.". Throws
/// bad_input if it cannot be written.
void write_gpt2_weights(const std::filesystem::path& file, nn::Module& model);

/// Whether tensors from a file lie as published, which those of a snapshot do not: [in, out].
bool have_gpt2_layout(const std::vector<named_tensor>& tensors);

}  // namespace troupe
