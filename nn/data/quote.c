/* nn/data/quote.c -- puts untrusted bytes into quotes, for error messages. */
#include "nn/data/quote.h"

#include <stdio.h>
#include <string.h>

struct quote quote_bytes(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return (struct quote){"nothing"};
    struct quote q = {"\""};
    size_t at = 1, i = 0;
    for (; i < n && at + 4 <= QUOTE_SHOWN + 1; i++) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
            q.text[at++] = (char)bytes[i];
        else
            at += (size_t)snprintf(q.text + at, 5, "\\x%02x", bytes[i]);
    }
    snprintf(q.text + at, sizeof q.text - at, "\"%s", i < n ? "..." : "");
    return q;
}

struct quote quote_string(const char *text)
{
    return quote_bytes((const uint8_t *)text, strlen(text));
}
