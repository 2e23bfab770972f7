/* gossip/wire/text.c -- syntax checks of the two kinds of text in messages: names and addresses.
 *
 * Both kinds of text come from other peers and reach terminals, files and getaddrinfo(). The
 * checks allow a fixed set of characters, so later code does not need to escape them.
 */
#include "gossip/wire/wire.h"

#include <string.h>

/* Returns whether c may occur in a member's name or a host name. */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.'
           || c == '_' || c == '-';
}

bool wire_name_ok(const char *name)
{
    size_t n = 0;
    while (n <= WIRE_NAME_MAX && is_word(name[n]))
        n++;
    return n >= 1 && n <= WIRE_NAME_MAX && name[n] == '\0';
}

/* Returns whether s is a port: 1..65535 without sign or leading zero. */
static bool port_ok(const char *s)
{
    uint32_t port = 0;
    size_t n = 0;
    for (; s[n] >= '0' && s[n] <= '9' && n < 5; n++)
        port = 10 * port + (uint32_t)(s[n] - '0');
    return n > 0 && s[n] == '\0' && s[0] != '0' && port <= 65535;
}

/* Parses an IPv6 address in brackets: hexadecimal digits, colons and dots, then optionally a
 * percent sign and a zone. Returns the position after it, or NULL. */
static const char *bracketed(const char *s)
{
    const char *at = s + 1;
    while (*at == ':' || *at == '.' || (*at != '\0' && strchr("0123456789abcdefABCDEF", *at)))
        at++;
    if (at - s < 3) /* The shortest IPv6 address, "::", has two characters. */
        return NULL;
    if (*at == '%') {
        if (!is_word(*++at))
            return NULL;
        while (is_word(*at))
            at++;
    }
    return *at == ']' ? at + 1 : NULL;
}

bool wire_address_ok(const char *address)
{
    if (strnlen(address, WIRE_ADDRESS_MAX + 1) > WIRE_ADDRESS_MAX)
        return false;
    const char *at = address;
    if (*at == '[') {
        at = bracketed(at);
        if (at == NULL)
            return false;
    } else {
        while (is_word(*at))
            at++;
        if (at == address)
            return false;
    }
    return *at == ':' && port_ok(at + 1);
}
