/* peer/page/hosts.h -- which Host headers the HTTP server answers: protection against DNS rebinding.
 *
 * A page of another site can make a browser resolve that site's name to this machine and read what is
 * served here. The browser then sends the site's name as Host. So a name is served only if it is known:
 *
 *   an IP address, with or without a port     yes: nobody can make it stand for another address
 *   localhost, this machine's host name       yes
 *   a name that was given, or one below it    yes: a.example allows x.a.example
 *   any other name, or two Host headers       no: 421
 */
#ifndef PEER_PAGE_HOSTS_H
#define PEER_PAGE_HOSTS_H

#include <stdbool.h>

enum { HOSTS_MAX = 32, HOSTS_NAME_MAX = 253 };

/* Begin with zeros. */
struct hosts
{
    char name[HOSTS_MAX][HOSTS_NAME_MAX + 1]; /* In lower case, without a port or a final dot. */
    unsigned n;
};

/* Adds the host of "host:port", "[address]:port" or "host". One that is too long, or one too many, is left
 * out: it is not served. */
void hosts_add(struct hosts *h, const char *address);
/* May a request with this Host header be answered? */
bool hosts_allow(const struct hosts *h, const char *host);

#endif
