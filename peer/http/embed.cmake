# peer/http/embed.cmake -- makes a C file of live.html (see live.h).
#
#   cmake -DPAGE=live.html -DOUT=live_html.c -P embed.cmake
#
# The same page gives the same file, on any machine.

# base64(HEX OUT): converts a SHA-256 hash from 64 hexadecimal digits to base64 (43 digits and "=").
function(base64 HEX OUT)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  foreach(at RANGE 0 60 3)
    string(SUBSTRING "${HEX}" ${at} 3 three)
    math(EXPR high "0x${three} >> 6")
    math(EXPR low "0x${three} & 63")
    string(SUBSTRING ${digits} ${high} 1 first)
    string(SUBSTRING ${digits} ${low} 1 second)
    string(APPEND text ${first}${second})
  endforeach()
  string(SUBSTRING "${HEX}" 63 1 last)
  math(EXPR last "0x${last} << 2")
  string(SUBSTRING ${digits} ${last} 1 last)
  set(${OUT} "${text}${last}=" PARENT_SCOPE)
endfunction()

# hash_of(TAG OUT): sets OUT to the hash of the text between <TAG> and </TAG>, as a content security
# policy writes it. The page must have exactly one such element.
function(hash_of TAG OUT)
  string(FIND "${page}" "<${TAG}>" from)
  string(FIND "${page}" "<${TAG}>" again REVERSE)
  string(FIND "${page}" "</${TAG}>" to)
  if(from LESS 0 OR NOT from EQUAL again OR to LESS from)
    message(FATAL_ERROR "${PAGE}: found no <${TAG}>, or more than one, expected one")
  endif()
  string(LENGTH "<${TAG}>" n)
  math(EXPR from "${from} + ${n}")
  math(EXPR n "${to} - ${from}")
  string(SUBSTRING "${page}" ${from} ${n} text)
  string(SHA256 hex "${text}")
  base64(${hex} sum)
  set(${OUT} "'sha256-${sum}'" PARENT_SCOPE)
endfunction()

file(READ "${PAGE}" page)
file(READ "${PAGE}" hex HEX)
if(page MATCHES "[^\n -~]")   # CMake counts characters. For ASCII text this equals the number of bytes.
  message(FATAL_ERROR "${PAGE}: found a byte that is no ASCII text, expected none")
endif()
hash_of(style style)
hash_of(script script)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")

file(WRITE "${OUT}" "/* Made of live.html by embed.cmake. */
#include \"peer/http/live.h\"

const char live_html[] = {
${bytes}0};
const size_t live_html_bytes = sizeof live_html - 1;

const char live_policy[] =
    \"default-src 'none'; script-src ${script}; style-src ${style}; \"
    \"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \"
    \"require-trusted-types-for 'script'\";
")
