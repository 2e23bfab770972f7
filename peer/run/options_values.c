/* peer/run/options_values.c -- functions that return the values of options after parsing. */
#include "peer/run/options.h"

#include "nn/math/number.h"
#include "peer/run/options_config.h"

#include <assert.h>
#include <string.h>

bool options_read_flag(const char *text, bool *on)
{
    if (number_choice("1|yes|true|on", text) >= 0)
        *on = true;
    else if (number_choice("0|no|false|off", text) >= 0)
        *on = false;
    else
        return false;
    return true;
}

static const struct option_value *value_of(const struct options *o, const char *name)
{
    uint32_t i = 0;
    while (i < o->n && strcmp(o->values[i].row->name, name) != 0)
        i++;
    assert(i < o->n && "the command has no option of this name");
    return &o->values[i];
}

const char *options_text(const struct options *o, const char *name)
{
    return value_of(o, name)->text;
}

uint64_t options_uint(const struct options *o, const char *name)
{
    const struct option_value *v = value_of(o, name);
    uint64_t u = 0;
    assert(v->row->kind == OPTION_UINT);
    if (v->text != NULL && !number_whole(v->text, &u))
        assert(false && "the default of a numeric option is not a number");
    return u;
}

double options_real(const struct options *o, const char *name)
{
    const struct option_value *v = value_of(o, name);
    double d = 0.0;
    assert(v->row->kind == OPTION_REAL);
    if (v->text != NULL && !number_real(v->text, &d))
        assert(false && "the default of a numeric option is not a number");
    return d;
}

bool options_flag(const struct options *o, const char *name)
{
    const struct option_value *v = value_of(o, name);
    bool on = false;
    assert(v->row->kind == OPTION_FLAG);
    if (v->text != NULL && !options_read_flag(v->text, &on))
        assert(false && "the default of a boolean option is not true or false");
    return on;
}

uint32_t options_operands(const struct options *o, const char *const **operands)
{
    *operands = o->operand;
    return o->n_operands;
}

bool options_has_default(const struct options *o, const struct option_value *v)
{
    const struct run_key *key;
    bool is_key = v->row >= o->run_rows && v->row < o->run_rows + o->n_run_rows;
    for (size_t k = 0; is_key && (key = run_key_at(o->command->trainer, k)) != NULL; k++)
        if (strcmp(key->name, v->row->name) == 0)
            return run_key_has_default(key);
    return true;
}

bool options_given(const struct options *o, const char *name)
{
    return value_of(o, name)->source >= OPTION_FILE;
}
