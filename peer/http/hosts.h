/* peer/http/hosts.h -- Host headers that the HTTP server accepts: protection against DNS rebinding.
 *
 * In DNS rebinding, a malicious web site makes its own name resolve to this machine. A page of the
 * site, open in a browser, can then read the pages of this server. The browser still sends the
 * site's name in the Host header, so the server accepts only known names in this header:
 *
 *   an IP address, with or without a port     yes: an address cannot be rebound
 *   localhost, this machine's host name       yes
 *   a name of hosts_add(), or a subdomain     yes: a.example allows x.a.example
 *   any other name, or two Host headers       no: 421
 */
#ifndef PEER_HTTP_HOSTS_H
#define PEER_HTTP_HOSTS_H

#include <stdbool.h>

enum { HOSTS_MAX = 32, HOSTS_NAME_MAX = 253 };

/* Host names that the server accepts. Initialise with zeros. */
struct hosts
{
    /* Names in lower case, without a port or a final dot. */
    char name[HOSTS_MAX][HOSTS_NAME_MAX + 1];
    unsigned n;
};

/* Adds the host of "host:port", "[address]:port" or "host". IP addresses are not stored, because
 * they are always allowed. A name that is too long, and any name after the first HOSTS_MAX, is
 * ignored: requests for such a name get status 421. */
void hosts_add(struct hosts *h, const char *address);
/* Returns whether a request with this Host header may be answered. */
bool hosts_allow(const struct hosts *h, const char *host);

#endif
