/* tests/explore/marks.h -- counts the runs that reach each mark, a named line of policy code
 * (peer/node/mark.h). */
#ifndef TESTS_EXPLORE_MARKS_H
#define TESTS_EXPLORE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* Creates counters for child processes 0 to n_children - 1, in memory that parent and children
 * share. Ends the program if no memory is left. Call it before fork(). */
void marks_open(uint32_t n_children);
/* Adds the marks that the run reached since the last call to the counters of a child process. Each
 * run counts once per mark. */
void marks_take(uint32_t child);
/* Appends a line "COUNT NAME" for each mark to a file: in how many runs the mark was reached.
 * Returns false if the file cannot be written. */
bool marks_write(const char *path);

#endif
