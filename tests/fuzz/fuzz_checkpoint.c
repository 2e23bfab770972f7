/* tests/fuzz/fuzz_checkpoint.c -- fuzzes the reader of checkpoints. The bytes are read unchanged,
 * and again with correct hashes, because nearly no input has correct hashes by chance. An accepted
 * checkpoint is written again, and must then have the same label and sections. */
#include "tests/unit/checkpoint_small.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

static uint8_t *copy_of(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n != 0 ? n : 1);
    demand(copy != NULL);
    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

/* Copies all sections of the state `from`, which was read from a checkpoint, to the state `to`. */
static void rewrite(struct state *to, const struct state *from)
{
    state_write(to);
    for (size_t i = 0; i < from->n_sections; i++) {
        const struct state_section *s = &from->section[i];
        demand(s->at <= from->n && s->n <= from->n - s->at);
        state_section(to, "%s", s->name);
        to->section[i].floats = s->floats;
        state_bytes(to, from->bytes + s->at, s->n);
    }
    demand(state_end(to) == 0);
}

static void check_taken(const struct checkpoint_file *m)
{
    struct state again = {0};
    struct checkpoint_file second;
    char error[FILE_ERROR_MAX] = "";
    size_t n;
    rewrite(&again, &m->state);
    uint8_t *bytes = small_file(&again, &m->label, &n);
    demand(checkpoint_file_read(&second, bytes, n, "again", error) == 0);
    demand(second.label.beat == m->label.beat && strcmp(second.label.run, m->label.run) == 0);
    demand(strcmp(second.label.name, m->label.name) == 0);
    demand(second.state.n_sections == m->state.n_sections);
    checkpoint_file_close(&second);
    state_close(&again);
}

static void try(uint8_t *bytes, size_t n)
{
    static const struct checkpoint_file empty;
    struct checkpoint_file m;
    char error[FILE_ERROR_MAX] = "";
    if (checkpoint_file_read(&m, bytes, n, "fuzz", error) == 0) {
        check_taken(&m);
        checkpoint_file_close(&m);
        return;
    }
    demand(memcmp(&m, &empty, sizeof m) == 0 && strlen(error) > 8);
    for (const char *c = error; *c != '\0'; c++)
        demand((unsigned char)*c >= 0x20 && *c != 0x7f);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint8_t *sealed = copy_of(p, n);
    try(copy_of(p, n), n);
    (void)small_seal(sealed, n);
    try(sealed, n);
    return 0;
}
