/* tests/explore/marks.c -- counts how many simulated runs reach each mark, a named line of policy
 * code (peer/node/mark.h). */
#define HEARSAY_MARKS

#include "marks.h"

#include "peer/node/mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The linker defines __start_marks and __stop_marks: the begin and the end of the section
 * "marks". */
extern struct mark *const __start_marks[], *const __stop_marks[];

/* Table of counters: one row per child process, with one counter per mark (named line of policy
 * code). */
static uint64_t *counter;
static uint32_t n_rows;

static size_t n_marks(void)
{
    return (size_t)(__stop_marks - __start_marks);
}

void marks_open(uint32_t n_children)
{
    size_t bytes = n_children * n_marks() * sizeof *counter;
    n_rows = n_children;
    counter = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counter == MAP_FAILED) {
        perror("explore");
        exit(3);
    }
}

void marks_take(uint32_t child)
{
    for (size_t k = 0; k < n_marks(); k++) {
        counter[child * n_marks() + k] += __start_marks[k]->n > 0;
        __start_marks[k]->n = 0;
    }
}

bool marks_write(const char *path)
{
    FILE *f = fopen(path, "a");
    if (f == NULL)
        return false;
    for (size_t k = 0; k < n_marks(); k++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < n_rows; i++)
            n += counter[i * n_marks() + k];
        fprintf(f, "%" PRIu64 " %s\n", n, __start_marks[k]->name);
    }
    return fclose(f) == 0;
}
