/* nn/data/encoding.c -- converts UTF-16 and Windows-1252 to UTF-8, and carriage returns to
 * newlines. */
#include "nn/data/encoding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPLACEMENT = 0xfffd, /* Character that replaces an unpaired UTF-16 surrogate. */
    /* Number of bytes that are inspected to recognise UTF-16 without a byte order mark. */
    PROBE = 64
};

const char *const encoding_name[ENCODINGS] = {
    [ENCODING_UTF8] = "UTF-8", [ENCODING_UTF16] = "UTF-16", [ENCODING_1252] = "Windows-1252"};

/* Unicode characters of the bytes 0x80 to 0x9f in Windows-1252. 0: the byte means the same
 * character as in Latin-1. */
static const uint16_t high[32] = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                  0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                  0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                  0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* Writes a character to out as UTF-8. Returns the number of bytes, at most 4. */
static size_t put(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(0xf00 >> n | c);
    return n;
}

/* Returns whether the text is UTF-16, and sets *little to true if it is little-endian. The text of
 * a table is mostly ASCII, so in UTF-16 about every other byte is NUL. */
static bool is_utf16(const uint8_t *p, size_t n, bool *little)
{
    if (n >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff))) {
        *little = p[0] == 0xff;
        return true;
    }
    size_t even = 0, odd = 0, probed = n < PROBE ? n / 2 * 2 : PROBE;
    for (size_t i = 0; i < probed; i += 2) {
        even += p[i] == 0;
        odd += p[i + 1] == 0;
    }
    *little = odd > even;
    return probed >= 4 && (even == 0) != (odd == 0) && 2 * (even + odd) * 2 > probed;
}

static uint32_t unit(const uint8_t *p, bool little)
{
    return little ? (uint32_t)(p[0] | p[1] << 8) : (uint32_t)(p[0] << 8 | p[1]);
}

/* Converts UTF-16 to UTF-8. Returns the length of the result: two bytes become at most three. If
 * the number of bytes is odd, the last one is dropped. */
static size_t from_utf16(const uint8_t *p, size_t n, bool little, uint8_t *out)
{
    size_t at = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        uint32_t c = unit(p + i, little);
        if (i == 0 && c == 0xfeff)
            continue;
        if (c >= 0xd800 && c < 0xe000) {
            uint32_t low = c < 0xdc00 && i + 3 < n ? unit(p + i + 2, little) : 0;
            bool pair = low >= 0xdc00 && low < 0xe000;
            c = pair ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : REPLACEMENT;
            i += pair ? 2 : 0;
        }
        at += put(out + at, c);
    }
    return at;
}

static size_t from_1252(const uint8_t *p, size_t n, uint8_t *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = p[i];
        if (c >= 0x80 && c < 0xa0 && high[c - 0x80] != 0)
            c = high[c - 0x80];
        at += put(out + at, c);
    }
    return at;
}

/* Returns true for valid UTF-8 (RFC 3629): shortest forms, no surrogates, no character above
 * U+10FFFF. */
static bool is_utf8(const uint8_t *p, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        uint8_t lead = p[i];
        if (lead < 0x80) {
            i++;
            continue;
        }
        size_t len = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        uint32_t c = lead & (0x7fu >> len);
        if (lead < 0xc2 || lead > 0xf4 || n - i < len)
            return false;
        for (size_t k = 1; k < len; k++) {
            if ((p[i + k] & 0xc0) != 0x80)
                return false;
            c = c << 6 | (p[i + k] & 0x3fu);
        }
        if (c < least[len] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
            return false;
        i += len;
    }
    return true;
}

static bool has_returns_only(const uint8_t *bytes, size_t n)
{
    return memchr(bytes, '\r', n) != NULL && memchr(bytes, '\n', n) == NULL;
}

bool encoding_is_odd(const uint8_t *bytes, size_t n)
{
    bool little;
    return n > 0 && (is_utf16(bytes, n, &little) || has_returns_only(bytes, n));
}

int encoding_normalise(uint8_t **bytes, size_t *n, bool any)
{
    bool little = false;
    if (*n == 0)
        return ENCODING_UTF8;
    enum encoding is = is_utf16(*bytes, *n, &little) ? ENCODING_UTF16
                       : any || is_utf8(*bytes, *n)  ? ENCODING_UTF8
                                                     : ENCODING_1252;
    if (is != ENCODING_UTF8) {
        if (*n > SIZE_MAX / 4)
            return -ENOMEM;
        uint8_t *out = malloc(3 * *n + 4);
        if (out == NULL)
            return -ENOMEM;
        *n =
            is == ENCODING_UTF16 ? from_utf16(*bytes, *n, little, out) : from_1252(*bytes, *n, out);
        free(*bytes);
        uint8_t *exact = realloc(out, *n > 0 ? *n : 1);
        *bytes = exact != NULL ? exact : out;
    }
    if (has_returns_only(*bytes, *n))
        for (size_t i = 0; i < *n; i++)
            (*bytes)[i] = (*bytes)[i] == '\r' ? '\n' : (*bytes)[i];
    return (int)is;
}
