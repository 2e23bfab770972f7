/* peer/http/hosts.c -- parses and compares host names in Host headers. */
#include "peer/http/hosts.h"

#include "peer/uv/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Writes the host of "host:port" in lower case, without brackets and without a final dot. Returns
 * false if `text` has another form. */
static bool read_host(const char *text, char host[HOSTS_NAME_MAX + 1])
{
    const char *end = text + strcspn(text, ":");
    if (*text == '[') {
        text++;
        end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
    }
    const char *port = *end == ']' ? end + 1 : end;
    if (*port == ':' && strspn(port + 1, "0123456789") != strlen(port + 1))
        return false;
    size_t n = (size_t)(end - text);
    n -= n > 1 && text[n - 1] == '.';
    if (n == 0 || n > HOSTS_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        host[i] = (char)tolower((unsigned char)text[i]);
    host[n] = '\0';
    return true;
}

static bool is_address(const char *host)
{
    char text[HOSTS_NAME_MAX + 8];
    union uv_address a;
    snprintf(text, sizeof text, strchr(host, ':') != NULL ? "[%s]:0" : "%s:0", host);
    return uv_resolve_numeric(text, &a) == 0;
}

void hosts_add(struct hosts *h, const char *address)
{
    if (h->n < HOSTS_MAX && read_host(address, h->name[h->n]) && !is_address(h->name[h->n]))
        h->n++;
}

bool hosts_allow(const struct hosts *h, const char *host)
{
    char name[HOSTS_NAME_MAX + 1];
    if (!read_host(host, name))
        return false;
    if (is_address(name) || strcmp(name, "localhost") == 0)
        return true;
    size_t n = strlen(name);
    for (unsigned i = 0; i < h->n; i++) {
        size_t k = strlen(h->name[i]);
        bool ends = n >= k && strcmp(name + n - k, h->name[i]) == 0;
        if (ends && (n == k || name[n - k - 1] == '.'))
            return true;
    }
    return false;
}
