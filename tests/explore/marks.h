/* tests/explore/marks.h -- counts the runs that reach each mark, a named line of policy code
 * (peer/node/mark.h). */
#ifndef TESTS_EXPLORE_MARKS_H
#define TESTS_EXPLORE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* Creates counters for child processes 0 to n_children - 1, in memory that parent and children
 * share. Ends the program if no memory is left. Call it before fork(). */
void marks_open(uint32_t n_children);
/* Takes the marks (named lines of policy code) that the run has reached since the last call, and
 * adds 1 to the counter of each of them for this child process. */
void marks_take(uint32_t child);
/* Appends a line "COUNT NAME" for each mark (named line of policy code) to a file: in how many runs
 * the mark was reached. Returns false if the file cannot be written. */
bool marks_write(const char *path);

#endif
