/* peer/http/live.h -- the live page at "/": live.html, as the build put it into the program.
 *
 *   live.html --embed.cmake--> build/live_html.c: the file's bytes, and a policy that lets a browser run
 *                              the page's own script and style, by their SHA-256, and nothing else
 *
 * The page asks /status.json and draws what it hears. It loads nothing from elsewhere, and the policy
 * keeps it from doing so.
 */
#ifndef PEER_HTTP_LIVE_H
#define PEER_HTTP_LIVE_H

#include <stddef.h>

extern const char live_html[]; /* live_html_bytes of them, and a NUL. */
extern const size_t live_html_bytes;

/* The value of Content-Security-Policy. */
extern const char live_policy[];

#endif
