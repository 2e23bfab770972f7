/* peer/cmd/report_draw.h -- has gnuplot and graphviz draw, as programs of their own.
 *
 * No shell is between: the program is looked for in PATH, and started with fixed arguments and an
 * environment that has only what it needs. Script and picture go through files without a name. It
 * has 60 seconds, and its picture 64 MiB.
 */
#ifndef PEER_CMD_REPORT_DRAW_H
#define PEER_CMD_REPORT_DRAW_H

#include "peer/report/page.h"

enum { CMD_REPORT_PATH = 1024 };

struct cmd_report_draw
{
    char program[REPORT_PROGRAMS][CMD_REPORT_PATH]; /* Where they are; "": nowhere. */
};

/* Look for the programs in PATH. `d` lives as long as *drawer. */
void cmd_report_draw_init(struct cmd_report_draw *d, struct report_drawer *drawer);

#endif
