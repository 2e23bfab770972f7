/* peer/http/live.h -- the live page at "/": live.html, which the build puts into the program.
 *
 *   live.html --embed.cmake--> build/live_html.c: bytes of the file, and a content security policy
 *
 * The policy allows a browser to run only the script and style of the page, which it identifies by
 * their SHA-256. The page polls /status.json and draws the result. It loads nothing from other
 * servers, and the policy forbids that.
 */
#ifndef PEER_HTTP_LIVE_H
#define PEER_HTTP_LIVE_H

#include <stddef.h>

extern const char live_html[]; /* HTML text of the live page: live_html_bytes bytes, and a NUL. */
extern const size_t live_html_bytes;

/* Value of the Content-Security-Policy header of the live page. */
extern const char live_policy[];

#endif
