/* peer/http/text.h -- a text buffer that grows. */
#ifndef PEER_HTTP_TEXT_H
#define PEER_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A text buffer. Set all bytes to zero before the first use. */
struct text
{
    char *p; /* n bytes and a NUL. NULL: nothing was added yet. */
    size_t n, cap;
    bool failed; /* True: memory ran out, so the text is not complete. */
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *format, ...);
void text_add_bytes(struct text *t, const char *p, size_t n);
/* Empties the text and clears `failed`. The memory is kept for reuse. */
void text_clear(struct text *t);
void text_close(struct text *t);

#endif
