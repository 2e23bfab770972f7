/* peer/cmd/completion.c -- `hearsay completion bash`: prints a bash script that completes hearsay
 * commands.
 *
 * The script consists of a table and the shell code that reads it. The table is generated from the
 * option rows of all commands, one line for each option, so that a new option needs no change here:
 *
 *   local --policy sync async ssp:     values, or first parts of values
 *   local --out DIR                    paths: FILE, DIR, and :FILE after a colon
 *   local --peers -                    any value: no candidates
 *   local --fresh                      no value
 *   eval FILE                          an operand
 *   key_new FILE                       a command of two words: "key new"
 */
#include "compress/codec.h"
#include "peer/cmd/cmd.h"
#include "topology/topology.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct option_row cmd_completion_rows[] = {
    {.name = "shell", .kind = OPTION_OPERAND, .arg = "bash", .required = true,
     .help = "shell: bash"},
    {.name = NULL},
};
/* clang-format on */

/* Shell code of the script. Bash splits a word also at "=" and ":", and replaces only the last
 * piece by the chosen candidate. The script therefore takes the whole words from the command line,
 * and removes the text before the last piece from each candidate. */
static const char *const script[] = {
    "_hearsay_values() # WORD KIND...: prints the completions of WORD, one per line\n"
    "{\n"
    "    local word=$1 kind\n"
    "    shift\n"
    "    for kind; do\n"
    "        case $kind in\n"
    "        -) ;;\n"
    "        FILE) compgen -f -- \"$word\" ;;\n"
    "        DIR) compgen -d -- \"$word\" ;;\n"
    "        :FILE) [[ $word != *:* ]] || compgen -f -P \"${word%%:*}:\" -- \"${word#*:}\" ;;\n"
    "        *) [[ $kind != \"$word\"* ]] || printf '%s\\n' \"$kind\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n",
    "\n"
    "_hearsay_of() # COMMAND NAME: prints the kinds of values of an option; fails if it has none\n"
    "{\n"
    "    local command name kinds\n"
    "    while read -r command name kinds; do\n"
    "        [[ $command != \"$1\" || $name != \"$2\" ]] || { echo \"$kinds\"; [[ -n $kinds ]]; "
    "return; }\n"
    "    done <<<\"$_hearsay_rows\"\n"
    "    return 1\n"
    "}\n",
    "\n"
    "_hearsay_names() # COMMAND: prints its flags, and the kinds of its operands\n"
    "{\n"
    "    local command name kinds\n"
    "    while read -r command name kinds; do\n"
    "        [[ $command != \"$1\" ]] || echo \"$name\"\n"
    "    done <<<\"$_hearsay_rows\"\n"
    "}\n",
    "\n"
    "_hearsay_commands() # First words of all commands\n"
    "{\n"
    "    cut -d ' ' -f 1 <<<\"$_hearsay_rows\" | cut -d _ -f 1 | sort -u\n"
    "}\n",
    "\n"
    "_hearsay_second() # Second words of the commands that begin with ${words[1]}\n"
    "{\n"
    "    sed -n \"s/^${words[1]-}_\\([a-z]*\\) .*/\\1/p\" <<<\"$_hearsay_rows\" | sort -u\n"
    "}\n",
    "\n"
    "_hearsay()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} piece=${COMP_WORDS[COMP_CWORD]} words word kinds "
    "front= command\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line != *[[:space:]] ]] || words+=('')\n"
    "    word=${words[-1]}\n"
    "    [[ $piece != [=:] ]] || piece=\n"
    "    command=${words[1]-}\n"
    "    [[ -z $(_hearsay_second) ]] || command+=_${words[2]-}\n"
    "    front=${word%\"$piece\"}\n"
    "    if ((${#words[@]} <= 2)); then\n"
    "        kinds=\"$(_hearsay_commands) help --help --version\"\n"
    "    elif [[ ${words[1]} == help ]] && ((${#words[@]} == 3)); then\n"
    "        kinds=$(_hearsay_commands)\n"
    "    elif [[ $command == *_* ]] && ((${#words[@]} == 3)); then\n"
    "        kinds=$(_hearsay_second)\n"
    "    elif [[ $word == --*=* ]] && kinds=$(_hearsay_of \"$command\" \"${word%%=*}\"); then\n"
    "        front=${front#\"${word%%=*}=\"} word=${word#*=}\n"
    "    elif ! kinds=$(_hearsay_of \"$command\" \"${words[-2]}\"); then\n"
    "        kinds=$(_hearsay_names \"$command\")\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(_hearsay_values \"$word\" $kinds)\n"
    "    COMPREPLY=(\"${COMPREPLY[@]#\"$front\"}\")\n"
    "    [[ ! -e ${COMPREPLY[0]-} ]] || compopt -o filenames\n"
    "    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *: ]] || compopt -o nospace\n"
    "}\n"
    "complete -F _hearsay hearsay\n",
};

/* Argument of the callback print_row(): name of the command that is being printed, with "_" for a
 * blank. */
struct rows
{
    const char *command;
};

/* Prints the topology names as candidates. A name is followed by a colon if the topology has a
 * parameter, as in "regular:K". */
static void print_topologies(void)
{
    for (const struct topology *const *t = topology_all; *t != NULL; t++)
        printf(" %s%s", (*t)->name, (*t)->help[strlen((*t)->name)] == ':' ? ":" : "");
    printf(" :FILE"); /* bash completes a file name after the colon, as in "edges:FILE". */
}

static void print_codecs(void)
{
    for (const struct codec *const *c = codec_all; *c != NULL; c++)
        printf(" %s", (*c)->name);
}

static void print_data(void)
{
    printf(" glyphs FILE :FILE");
}

enum { COMMAND_NAME_MAX = 32 };

/* Options that take a spec of a topology, codec or data set. `print` prints the candidates, because
 * the table of options does not list them. */
static const struct
{
    const char *flag;
    void (*print)(void);
} specs[] = {
    {"topology", print_topologies}, {"final-topology", print_topologies},
    {"compress", print_codecs},     {"final-compress", print_codecs},
    {"data", print_data},
};

static void print_row(void *self, const char *name, const char *words)
{
    const struct rows *r = self;
    bool any = words == NULL || words[0] != '\0';
    printf("%s%s%s", r->command, name != NULL ? " --" : "", name != NULL ? name : "");
    if (words != NULL && words[0] != '\0')
        printf(" %s", words);
    for (size_t i = 0; name != NULL && i < sizeof specs / sizeof *specs; i++)
        if (strcmp(name, specs[i].flag) == 0) {
            specs[i].print();
            any = true;
        }
    puts(any ? "" : " -");
}

int cmd_completion(const struct options *o)
{
    const char *shell = options_text(o, "shell");
    if (strcmp(shell, "bash") != 0)
        return cmd_fail(o, CMD_USAGE, "found '%.80s', expected bash", shell);
    puts("# bash completion of hearsay, as `hearsay completion bash` prints it.\n_hearsay_rows='");
    for (const struct command *c = o->world->commands; c->name != NULL; c++) {
        char name[COMMAND_NAME_MAX];
        size_t i = 0;
        for (; c->name[i] != '\0' && i + 1 < sizeof name; i++)
            name[i] = (char)(c->name[i] == ' ' ? '_' : c->name[i]);
        name[i] = '\0';
        struct rows rows = {.command = name};
        const struct options_completion_sink sink = {.row = print_row, .self = &rows};
        options_completions(c, &sink);
        printf("%s --help\n", name);
    }
    puts("'\n");
    for (size_t i = 0; i < sizeof script / sizeof *script; i++)
        fputs(script[i], stdout);
    return cmd_finish(o);
}
