// embed.mjs OUT URL=TYPE=FILE...: writes a C++ source that holds the files (actors/troupe/inspector/page_files.hpp).
import { readFileSync, writeFileSync } from "node:fs";

const [out, ...files] = process.argv.slice(2);
const delimiter = "troupe_page";
// Compilers limit the length of one literal; neighbours are joined by them.
const pieceLength = 8000;

function literal(text) {
  if (text.includes(`)${delimiter}"`)) throw new Error(`a file of the page holds the end of a C++ literal: )${delimiter}"`);
  const pieces = [];
  for (let at = 0; at < text.length; at += pieceLength) pieces.push(`R"${delimiter}(${text.slice(at, at + pieceLength)})${delimiter}"`);
  return pieces.join("\n") || '""';
}

const entries = files.map((file) => {
  // A type has a '=' of its own: text/html; charset=utf-8.
  const [first, last] = [file.indexOf("="), file.lastIndexOf("=")];
  const [url, type, path] = [file.slice(0, first), file.slice(first + 1, last), file.slice(last + 1)];
  return `    {"${url}", "${type}",\n${literal(readFileSync(path, "utf8"))}sv},\n`;
});
writeFileSync(
  out,
  `// Made from tools/inspector by embed.mjs.
#include "troupe/inspector/page_files.hpp"

#include <array>

namespace troupe::actors::inspector {
namespace {

using namespace std::string_view_literals;

const std::array<page_file, ${entries.length}> files_of_page = {{
${entries.join("")}}};

}  // namespace

std::span<const page_file> page_files() { return files_of_page; }
std::string_view page_missing() { return {}; }

}  // namespace troupe::actors::inspector
`,
);
