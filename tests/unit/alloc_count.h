/* tests/unit/alloc_count.h -- counts all calls of the allocator in `alloc_calls`. Works on glibc in
 * builds without sanitizers, because glibc also exports its allocator as __libc_malloc() and so on.
 * In other builds ALLOC_COUNTS is 0, and tests that count are skipped with a message. */
#ifndef TESTS_UNIT_ALLOC_COUNT_H
#define TESTS_UNIT_ALLOC_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic size_t alloc_calls;

#if defined(__GLIBC__) && !defined(HEARSAY_SANITIZED)
#define ALLOC_COUNTS 1

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    alloc_calls++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    alloc_calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    alloc_calls++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    alloc_calls++;
    return __libc_memalign(align, n);
}

#else
#define ALLOC_COUNTS 0
#endif

/* Allocates and frees once, so that a test can check that allocations are counted. The pointer is
 * volatile, because compilers remove an allocation that is freed at once. */
static inline void alloc_once(void)
{
    void *volatile p = calloc(1, 100);
    free(p);
}

#endif
