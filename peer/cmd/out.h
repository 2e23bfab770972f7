/* peer/cmd/out.h -- --out DIR of a command: refused, begun, or finished before.
 *
 *   look    another run's, or nobody's files: exit code 2, and nothing has been touched
 *           this run's, finished: cmd_out_again() says so, with its result
 *   open    locked; with --fresh what is there is moved aside
 *   claim   DIR/run.txt names the run; behind this the command writes
 *   end     DIR/summary.json
 *
 * What stands in DIR is peer/store/outdir.h's.
 */
#ifndef PEER_CMD_OUT_H
#define PEER_CMD_OUT_H

#include "peer/cmd/cmd.h"
#include "peer/store/outdir.h"

#define CMD_ROW_FRESH                                                                              \
    {                                                                                              \
        .name = "fresh", .kind = OPTION_FLAG,                                                      \
        .help = "begin anew: what --out holds of an earlier run moves to old.1 in it, old.2 and "  \
                "so on; without, another run there is refused, and one that has finished says so"  \
    }

#define CMD_ROW_CHECK                                                                              \
    {                                                                                              \
        .name = "check", .kind = OPTION_FLAG,                                                      \
        .help = "check options, data and --out as a run does, say whether the run has finished "   \
                "in --out, and exit without training or writing: exit code 0 or 2"                 \
    }

struct cmd_out
{
    const struct options *o;
    const char *dir;           /* Borrowed. */
    char text[OWNER_TEXT_MAX]; /* Whose it is to be. */
    bool begun;                /* It is there, and has not finished. */
    bool finished;             /* It has: see cmd_out_again(). */
    struct outdir held;
};

/* Write the text of the command and its run, and look. CMD_OK, out->finished perhaps; CMD_USAGE
 * with a line on stderr where --out is another run's. `flags` as in owner_write(). With --fresh
 * all is well. */
int cmd_out_look(struct cmd_out *out, const struct options *o, const char *dir,
                 const struct owner_flag *flags, const struct run *run);

/* The same of a text that is there already. */
int cmd_out_look_again(struct cmd_out *out);

/* Make it, lock it, look again, and with --fresh move aside what is there. */
int cmd_out_open(struct cmd_out *out);
int cmd_out_claim(struct cmd_out *out);
void cmd_out_close(struct cmd_out *out);

/* Complete a run's summary, which stays the caller's, by "finished" and "exit_code", and write it
 * as summary.json of `dir`, unless that is NULL. CMD_OK, or CMD_FAILED with a line on stderr. */
int cmd_out_end(const struct options *o, const char *dir, json_t *summary, bool finished,
                int exit_code);

/* Ends a command with --check: prints whether the run has finished in --out, with --json as an object with
 * the boolean "finished". Returns the exit code. */
int cmd_out_checked(const struct options *o, bool finished);

/* Say that the run has finished before, with its result, on stdout; as JSON with --json. Returns
 * the exit code with which it ended. */
int cmd_out_again(const struct cmd_out *out);

#endif
