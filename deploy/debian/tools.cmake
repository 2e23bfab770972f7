# deploy/debian/tools.cmake -- read by cpack before it makes a package. Fails if a tool is missing.
# Without dpkg-shlibdeps, cpack would make packages without dependencies, and print no warning.

foreach(tool dpkg-shlibdeps file gzip python3)
  find_program(${tool}_found ${tool} NO_CACHE)
  if(NOT ${tool}_found)
    list(APPEND missing ${tool})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "cpack needs these programs, which are not installed: ${missing}. Install them first:
  apt-get install dpkg-dev file gzip python3")
endif()
