# cmake -D SOURCE=<tree> -D OUTPUT=<file> -P WriteCommit.cmake: writes the commit of the tree as a C string, "unknown" where
# that is no repository of its own (a tarball).
set(commit unknown)
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit ${found})
  endif()
endif()
set(text "\"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} ${text})
endif()
