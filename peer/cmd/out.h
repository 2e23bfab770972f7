/* peer/cmd/out.h -- steps in which a command uses its output directory DIR (--out DIR).
 *
 *   look    DIR holds another run, or files without a run.txt: exit code 2, DIR is unchanged
 *           DIR holds this run, finished: cmd_out_print_finished() prints its result
 *   open    locks DIR; with --fresh moves its contents to a new directory DIR/old.N
 *   claim   writes DIR/run.txt, which names the run; only then may the command write files
 *   end     writes DIR/summary.json
 *
 * The contents of DIR are described in peer/output/outdir.h.
 */
#ifndef PEER_CMD_OUT_H
#define PEER_CMD_OUT_H

#include "peer/cmd/cmd.h"
#include "peer/output/outdir.h"

#define CMD_ROW_FRESH                                                                              \
    {                                                                                              \
        .name = "fresh", .kind = OPTION_FLAG,                                                      \
        .help = "start from round 0; files of an earlier run in --out move to old.1, old.2 and "   \
                "so on. Without --fresh, another run in --out is refused, and a finished run is "  \
                "only reported"                                                                    \
    }

#define CMD_ROW_CHECK                                                                              \
    {                                                                                              \
        .name = "check", .kind = OPTION_FLAG,                                                      \
        .help = "check options, data and --out, say whether the run in --out has finished, and "   \
                "exit with 0 or 2 without training or writing"                                     \
    }

struct cmd_out
{
    const struct options *o;
    const char *dir; /* Path of the output directory. Borrowed. */
    /* Contents that run.txt must have if the directory belongs to this run: the command and the
     * run. */
    char text[RUN_IDENTITY_TEXT_MAX];
    bool begun; /* True if the directory holds this run, and the run has not finished. */
    /* True if the directory holds this run, and the run has finished. cmd_out_print_finished() then
     * prints its result. */
    bool finished;
    struct outdir held;
};

/* Writes the command and its run to out->text, and compares this text with run.txt in the directory
 * `dir`. Returns CMD_OK, and sets out->finished if `dir` holds the finished run. Returns CMD_USAGE
 * after a message on stderr if `dir` belongs to another run. With --fresh `dir` may belong to any
 * run. `flags`: as in run_identity_write(). */
int cmd_out_examine(struct cmd_out *out, const struct options *o, const char *dir,
                    const struct run_identity_flag *flags, const struct run *run);

/* Examines the output directory again for the same run: compares its run.txt with out->text, which
 * cmd_out_examine() has written. Returns and prints the same as cmd_out_examine(). */
int cmd_out_reexamine(struct cmd_out *out);

/* Creates and locks the output directory, and examines it again under the lock. With --fresh moves
 * its contents to a new directory DIR/old.N. Returns CMD_OK, or an exit code after a message on
 * stderr. */
int cmd_out_open(struct cmd_out *out);
/* Writes out->text to DIR/run.txt, so that the directory belongs to this run. Returns CMD_OK, or an
 * exit code after a message on stderr. */
int cmd_out_claim(struct cmd_out *out);
/* Unlocks the output directory. May be called even if the directory was never opened. */
void cmd_out_close(struct cmd_out *out);

/* Adds "finished" and "exit_code" to the summary of a run, and writes the summary to
 * `dir`/summary.json unless `dir` is NULL. The caller still owns `summary`. Returns CMD_OK, or
 * CMD_FAILED after a message on stderr. */
int cmd_out_write_summary(const struct options *o, const char *dir, json_t *summary, bool finished,
                          int exit_code);

/* Ends a command that was called with --check: prints whether the run in --out has finished, with
 * --json as an object with the boolean "finished". Returns the exit code. */
int cmd_out_print_check(const struct options *o, bool finished);

/* Prints on stdout that the run has already finished, and its result (with --json as JSON). Returns
 * the exit code with which the run ended. */
int cmd_out_print_finished(const struct cmd_out *out);

#endif
