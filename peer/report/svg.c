/* peer/report/svg.c -- a drawn picture on its way into a page. */
#include "peer/report/svg.h"

#include <string.h>
#include <strings.h>

/* Where the prefix goes: behind these. */
static const char *const marks[] = {" id=\"", " id='", "href=\"#", "href='#", "url(#", "url('#"};

/* What our pictures do not have, in any case of letters. */
static const char *const refused[] = {"<script", "<foreignobject", "<image",  "<a ",
                                      "<iframe", "javascript:",    "<!entity"};

/* The first of `text` in [p, end); NULL. */
static const char *find(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);
    for (; (size_t)(end - p) >= n; p++)
        if (strncasecmp(p, text, n) == 0)
            return p;
    return NULL;
}

static bool is_refused(const char *p, const char *end)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (find(p, end, refused[i]) != NULL)
            return true;
    /* A reference that is none into the picture itself. */
    for (const char *at = p; (at = find(at, end, "href=")) != NULL; at += 5)
        if (end - at < 7 || at[6] != '#')
            return true;
    return false;
}

/* How long the mark is that stands here; 0: none. */
static size_t mark_at(const char *p, const char *end)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t n = strlen(marks[i]);
        if ((size_t)(end - p) >= n && memcmp(p, marks[i], n) == 0)
            return n;
    }
    return 0;
}

bool report_svg_embed(struct report_text *out, const char *drawn, size_t n, const char *prefix)
{
    const char *from = find(drawn, drawn + n, "<svg"), *end = NULL;
    if (memchr(drawn, '\0', n) != NULL)
        return false;
    for (const char *p = from; p != NULL && (p = find(p, drawn + n, "</svg>")) != NULL; p += 6)
        end = p + 6;
    if (end == NULL || is_refused(from, end))
        return false;
    for (const char *p = from; p < end;) {
        const char *comment =
            end - p >= 4 && memcmp(p, "<!--", 4) == 0 ? find(p, end, "-->") : NULL;
        size_t mark = mark_at(p, end);
        if (comment != NULL) {
            p = comment + 3;
            continue;
        }
        report_text_bytes(out, p, mark > 0 ? mark : 1);
        if (mark > 0)
            report_text_put(out, prefix);
        p += mark > 0 ? mark : 1;
    }
    return true;
}
