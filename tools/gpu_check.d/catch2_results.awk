# Reads what Catch2's XML reporter wrote, perhaps only its beginning. Prints "key<TAB>value" lines: how many cases passed,
# failed, skipped, and failed only because a library could not be loaded (unloaded); complete is 1 if the program came to its
# end; without_gpu is how many were skipped because there is none; running is the case that was under way; each failure, with the first thing that went wrong; why a case was skipped.
function decoded(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text); gsub(/&amp;/, "\\&", text)
  return text
}
function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return decoded(text)
}
function attribute(name,   from) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  from = RSTART + length(name) + 3
  return decoded(substr($0, from, RSTART + RLENGTH - from - 1))
}
/^ *<TestCase / { running = attribute("name"); what = ""; skip = ""; in_case = 1 }
/^ *<Expression .*success="false"/ || /^ *<(Exception|FatalErrorCondition|Failure)[ >]/ {
  if (what == "") place = attribute("filename") ":" attribute("line")
}
# An exception within an expression says what went wrong; the expression only where.
/^ *<Expression .*success="false"/ { is_first = what == "" }
/^ *<Exception[ >]/ && is_first { what = "" }
/^ *<\/Expression>/ { is_first = 0 }
/^ *<(Expanded|Exception|FatalErrorCondition|Failure)[ >]/ { wants = "failure"; next }
/^ *<Skip / { wants = "skip"; next }
/^ *<\// { wants = "" }
wants == "failure" && what == "" { what = trimmed($0); wants = "" }
wants == "skip" && skip == "" { skip = trimmed($0); wants = "" }
in_case && /^ *<OverallResult / {
  if ($0 ~ /success="false"/) {
    if (what ~ /which cannot be loaded/) ++unloaded
    else { ++failed; sub(/.*\//, "", place); print "failure\t" running ": " what " (" place ")" }
  } else if ($0 !~ /skips="0"/) { ++skipped; why = skip; without_gpu += skip == "no GPU here" }
  else ++passed
  in_case = 0
}
/^ *<\/TestCase>/ { running = "" }
/^ *<OverallResultsCases / { complete = 1 }
END {
  print "passed\t" passed + 0; print "failed\t" failed + 0; print "skipped\t" skipped + 0; print "unloaded\t" unloaded + 0
  print "without_gpu\t" without_gpu + 0; print "complete\t" complete + 0; print "running\t" running; print "why\t" why
}
