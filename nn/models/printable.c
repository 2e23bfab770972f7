/* nn/models/printable.c -- checks UTF-8. In UTF-8 only the first two bytes of a character need
 * special checks. */
#include "nn/models/printable.h"

#include <stdbool.h>
#include <string.h>

static size_t replace(char out[PRINTABLE_MAX])
{
    memcpy(out, "\xef\xbf\xbd", 3); /* The replacement character U+FFFD in UTF-8. */
    return 3;
}

/* Returns the length of a character that begins with this byte. 0: no character of several bytes
 * begins with it. The byte C2 also begins control characters, which continues() refuses. */
static size_t length(uint8_t first)
{
    return first >= 0xc2 && first <= 0xdf   ? 2
           : first >= 0xe0 && first <= 0xef ? 3
           : first >= 0xf0 && first <= 0xf4 ? 4
                                            : 0;
}

/* Some first bytes of a character restrict its second byte to the ranges in this table. After other
 * first bytes, the second byte is in 80 to BF. */
static bool continues(const struct printable *p, uint8_t byte)
{
    static const struct
    {
        uint8_t first, low, high;
    } narrow[] = {{0xc2, 0xa0, 0xbf}, /* Excludes control characters. */
                  {0xe0, 0xa0, 0xbf}, /* Excludes overlong encodings of characters below U+0800. */
                  {0xed, 0x80, 0x9f}, /* Excludes surrogates (U+D800 to U+DFFF). */
                  {0xf0, 0x90, 0xbf}, /* Excludes overlong encodings of characters below U+10000. */
                  {0xf4, 0x80, 0x8f}}; /* Excludes code points above U+10FFFF. */
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow && p->n == 1; i++)
        if (p->held[0] == narrow[i].first)
            return byte >= narrow[i].low && byte <= narrow[i].high;
    return byte >= 0x80 && byte <= 0xbf;
}

static size_t begin(struct printable *p, uint8_t byte, char out[PRINTABLE_MAX])
{
    if ((byte >= 0x20 && byte <= 0x7e) || byte == '\n' || byte == '\t') {
        out[0] = (char)byte;
        return 1;
    }
    p->need = length(byte);
    if (p->need == 0)
        return replace(out);
    p->held[p->n++] = byte;
    return 0;
}

size_t printable_put(struct printable *p, uint8_t byte, char out[PRINTABLE_MAX])
{
    size_t n = 0;
    if (p->n > 0 && continues(p, byte)) {
        p->held[p->n++] = byte;
        if (p->n < p->need)
            return 0;
        n = p->n;
        memcpy(out, p->held, n);
        p->n = 0;
        return n;
    }
    n = printable_end(p, out);
    return n + begin(p, byte, out + n);
}

size_t printable_end(struct printable *p, char out[PRINTABLE_MAX])
{
    if (p->n == 0)
        return 0;
    p->n = 0;
    return replace(out);
}
